import { expect, test } from 'bun:test'
import { gatewaysToVendors } from '../support/raw-vendors.ts'
import { connect, eras, shown, type Told } from '../support/mcp.ts'
import { answer, completion, done, event, stream, usageEvent, type Reply } from '../support/vendor.ts'

/** What the tool `chat` makes of the forms that vendors of the common protocol give an answer, whole and streamed. */

const { gatewayTo } = gatewaysToVendors()

type Said = Record<string, unknown>

const chunkOf = (delta: Said, finish: string | null = null) =>
  event({ id: 'c1', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })

/** A vendor that says this message, or these deltas to a client that streams. */
function saying(message: Said, deltas: readonly Said[]): Reply {
  const events = [...deltas.map((delta) => chunkOf(delta)), chunkOf({}, 'stop'), usageEvent(10, 5), done]
  const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }]
  const [whole, streamed] = [answer(200, completion('', { choices })), stream(events.join(''))]
  return (socket, { body }) => void socket.write(body['stream'] === true ? streamed : whole)
}

const part = (type: 'text' | 'thinking', text: string) =>
  type === 'text' ? { type, text } : { type, thinking: [{ type: 'text', text }] }
const call = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{}' } })
const signed = { ...call('call_1', 'look'), extra_content: { google: { thought_signature: 'c2lnbmVk' } } }
const parallel = [call('call_1', 'look'), call('call_2', 'listen')]

test.each([
  [
    'parts of text and thinking',
    saying({ content: [part('thinking', 'Hm.'), part('text', 'Hello.')] }, [
      { content: [part('thinking', 'Hm.')] },
      { content: [part('text', 'Hel')] },
      { content: 'lo.' },
    ]),
    { text: 'Hello.', reasoning: 'Hm.' },
  ],
  [
    'reasoning under another name',
    saying({ content: 'Hello.', reasoning: 'Hm.' }, [{ reasoning: 'Hm.' }, { content: 'Hello.' }]),
    { text: 'Hello.', reasoning: 'Hm.' },
  ],
  [
    'a call with a signature',
    saying({ content: null, tool_calls: [signed] }, [{ tool_calls: [{ index: 0, ...signed }] }]),
    { text: '', tool_calls: [signed] },
  ],
  [
    'parallel calls under one index',
    saying(
      { content: null, tool_calls: parallel },
      parallel.map((one) => ({ tool_calls: [{ index: 0, ...one }] })),
    ),
    { text: '', tool_calls: parallel },
  ],
])('the same is shown of a whole answer and of a stream: %s', async (_form, reply, expected) => {
  const { gateway } = await gatewayTo(reply)
  for (const era of eras) {
    const client = await connect(gateway, era)
    const told: Told[] = []
    for (const options of [undefined, { onprogress: (one: Told) => told.push(one) }]) {
      const result = await client.call('chat', { model: 'm', prompt: 'Hi' }, options)
      expect(shown<{ choices: object[] }>(result).choices).toMatchObject([expected])
    }
    expect(told.map(({ message }) => message ?? '').join('')).toBe(expected.text)
    await client.close()
  }
})
