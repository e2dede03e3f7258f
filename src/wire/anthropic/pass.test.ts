import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { markGoogle } from '../../capabilities/conversation.ts'
import { passAnswer } from './pass-answer.ts'
import { passAsk } from './pass-ask.ts'
import { askOf } from './testing.ts'
import { readUsage, writeUsage } from './usage.ts'

const pass = (native: JsonObject) =>
  JSON.parse(
    passAsk(askOf(native, { stream: false }), { upstreamModel: 'theirs', namespaced: (label) => `mine/${label}` }),
  ) as JsonObject

describe('the request goes on as it came', () => {
  const messages = [{ role: 'user', content: 'Hi' }]

  test('but for the model and the label of the user', () => {
    const native = { model: 'ours', messages, odd: { deep: [1] }, metadata: { user_id: 'ann', more: 1 } }
    expect(pass(native)).toEqual({ ...native, model: 'theirs', metadata: { user_id: 'mine/ann', more: 1 } })
    expect(pass({ messages, metadata: null })).toEqual({ model: 'theirs', messages, metadata: null })
  })

  test('and for thoughts that this vendor cannot have made', () => {
    const own = { type: 'thinking', thinking: 'Hm', signature: 'Eq1' }
    const unsigned = { type: 'thinking', thinking: 'Hm', signature: '' }
    const google = { type: 'thinking', thinking: '', signature: markGoogle('x') }
    const text = { type: 'text', text: 'Hi' }
    const written = [
      { role: 'assistant', content: [own, text] },
      { role: 'assistant', content: [unsigned, google, text] },
      { role: 'assistant', content: [unsigned] },
      ...messages,
    ]
    expect(pass({ messages: written })['messages']).toEqual([
      { role: 'assistant', content: [own, text] },
      { role: 'assistant', content: [text] },
      ...messages,
    ])
  })
})

test('a search that has no price does not go on', () => {
  const search = { type: 'web_search_20250305', name: 'web_search' }
  const messages = [{ role: 'user', content: 'Hi' }]
  expect(() => pass({ messages, tools: [search] })).toThrow(
    expect.objectContaining({ details: expect.objectContaining({ param: 'tools[0].type' }) }),
  )
  expect(pass({ messages, tools: [{ ...search, max_uses: 0 }] })).toHaveProperty('tools')
})

const answer = { id: 'msg_1', type: 'message', model: 'theirs', content: [{ type: 'text', text: 'Hello there' }] }
const counted = { input_tokens: 3, output_tokens: 5 }
const passed = (body: unknown) => passAnswer(askOf({}, { stream: false }), Buffer.from(JSON.stringify(body)))

describe('an answer', () => {
  test('keeps its bytes but for the model, and is counted', () => {
    const { body, usage } = passed({ ...answer, usage: counted })
    expect(Buffer.from(body).toString()).toBe(JSON.stringify({ ...answer, model: 'ours', usage: counted }))
    expect(usage).toMatchObject({ input: 3, output: 5 })
  })

  test('without a count is estimated', () => {
    const uncounted = passed(answer)
    expect(uncounted.usage).toBeUndefined()
    expect(uncounted.estimateOutput()).toBeWithin(1, 6)
    expect(passed({ ...answer, content: [] }).estimateOutput()).toBe(1)
  })

  test.each([
    ['an error under a good status', { type: 'error', error: { type: 'api_error', message: 'on fire' } }, 'on fire'],
    ['no content', { id: 'msg_1' }, 'without content'],
    ['no object', [], 'no answer'],
  ])('%s is a failure', (_name, body, message) => {
    expect(() => passed(body)).toThrow(message)
  })
})

describe('usage', () => {
  test('takes the kinds of input apart, and what was written by how long it is kept', () => {
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 30,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
      output_tokens: 7,
      output_tokens_details: { thinking_tokens: 4 },
      server_tool_use: { web_search_requests: 2 },
    }
    const read = {
      input: 10,
      cachedInput: 100,
      cacheWrite: 20,
      cacheWriteHour: 10,
      output: 7,
      reasoning: 4,
      webSearch: 2,
    }
    expect(readUsage(usage)).toEqual(read)
    expect(readUsage(writeUsage(read))).toEqual(read)
  })

  test('adds what summing up an overlong conversation cost', () => {
    const iterations = [
      { type: 'compaction', input_tokens: 1_000, output_tokens: 50, cache_read_input_tokens: 5 },
      { type: 'message', input_tokens: 10, output_tokens: 7 },
    ]
    expect(readUsage({ ...counted, iterations })).toMatchObject({ input: 1_003, output: 55, cachedInput: 5 })
  })

  test.each([
    [
      { input_tokens: -5, output_tokens: 2.5 },
      { input: 0, output: 2 },
    ],
    [
      { input_tokens: 'x', output_tokens: 1e300 },
      { input: 0, output: 1_000_000_000 },
    ],
    [{ cache_creation: { ephemeral_1h_input_tokens: 9 } }, { cacheWrite: 0, cacheWriteHour: 9 }],
  ])('is read with suspicion: %j', (usage, read) => {
    expect(readUsage(usage)).toMatchObject(read)
  })

  test('has no count of the output where none was given', () => {
    expect(readUsage({ input_tokens: 5 })).not.toHaveProperty('output')
    expect(readUsage(null)).toBeUndefined()
  })

  test('of sounds, of pictures and of what is kept for later is shown with the rest', () => {
    const kept = { cacheWrite: 7, cacheWriteHour: 8 }
    const shown = writeUsage({ input: 1, imageInput: 2, audioInput: 3, ...kept, output: 4, audioOutput: 5 })
    expect(shown).toMatchObject({
      input_tokens: 6,
      output_tokens: 9,
      cache_creation_input_tokens: 15,
      cache_creation: { ephemeral_5m_input_tokens: 7, ephemeral_1h_input_tokens: 8 },
      cache_read_input_tokens: 0,
      server_tool_use: null,
    })
  })
})
