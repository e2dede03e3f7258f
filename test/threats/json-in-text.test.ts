import { expect, test } from 'bun:test'
import { gatewayForTests } from '../support/gateway.ts'

const gateway = gatewayForTests()

/** What a vendor that needs objects is sent for a tool's call, with these arguments and this result as texts. */
async function sentFor(model: string, written: { arguments: string; result: string }): Promise<string> {
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: written.arguments } }
  const answer = await gateway.post('/v1/chat/completions', {
    model,
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: written.result },
    ],
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
  })
  expect(answer.status).toBe(200)
  return (await gateway.calls()).at(-1)?.text ?? ''
}

const cut = String.raw`{"page":"a\ud83d","id":1}`

// B-06
test.each([
  ['claude-sonnet-4-5', { arguments: cut, result: 'ok' }],
  ['gemini-3.5-flash', { arguments: cut, result: cut }],
])('half of a surrogate pair in JSON inside a text is sent to %s as U+FFFD', async (model, written) => {
  const sent = await sentFor(model, written)
  expect(sent).toContain('{"page":"a\ufffd","id":1}')
  expect(sent).not.toContain('ud83d')
})

// B-03
test.each(['claude-sonnet-4-5', 'gemini-3.5-flash'])(
  'JSON inside a text that nests too deep stays text for %s',
  async (model) => {
    const deep = '{"a":'.repeat(1_000) + '1' + '}'.repeat(1_000)
    for (const written of [
      { arguments: deep, result: 'ok' },
      { arguments: '{}', result: deep },
    ]) {
      expect((await sentFor(model, written)).includes(JSON.stringify(deep))).toBe(true)
    }
  },
)

// B-04
test('JSON inside a text that has too many keys stays text', async () => {
  const wide = `{${Array.from({ length: 100_001 }, (_, index) => `"${index}":0`).join()}}`
  const sent = await sentFor('gemini-3.5-flash', { arguments: '{}', result: wide })
  expect(sent.includes(JSON.stringify(wide))).toBe(true)
})
