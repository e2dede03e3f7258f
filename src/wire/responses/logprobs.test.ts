import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { responsesChat } from './chat.ts'
import { askOf, name } from './testing.ts'

const likely = (token: string) => ({ token, logprob: -0.5, bytes: [...Buffer.from(token)], top_logprobs: [] })
const logprobsOf = (...tokens: string[]) => ({ content: tokens.map(likely), refusal: null })

/** The log probabilities that a client sees of a whole answer and of a stream: at its deltas, and at its end. */
function shown(body: JsonObject) {
  const blocks = [{ kind: 'text' as const, text: 'Hi you' }]
  const reply = { choices: [{ blocks, finish: 'stop' as const, logprobs: logprobsOf('Hi', ' you') }], usage: undefined }
  const whole = JSON.parse(Buffer.from(responsesChat.writeAnswer(askOf(body), reply, name)).toString())
  const writer = responsesChat.openWriter(askOf({ ...body, stream: true }), name)
  const say = (text: string): ReplyEvent => ({ kind: 'text-delta', choice: 0, text, logprobs: logprobsOf(text) })
  const written = [writer.write([say('Hi'), say(' you')]), writer.closing({ input: 1, output: 2 })]
  const events = written.flatMap((bytes) => [
    ...Buffer.from(bytes ?? [])
      .toString()
      .matchAll(/^data: (.*)$/gm),
  ])
  const read = events.map(([, data = '']) => JSON.parse(data))
  return {
    whole: whole.output[0].content[0],
    deltas: read.filter(({ type }) => type === 'response.output_text.delta').map(({ logprobs }) => logprobs),
    done: read.find(({ type }) => type === 'response.output_text.done').logprobs,
    streamed: read.at(-1).response.output[0].content[0],
  }
}

test.each([{ include: ['message.output_text.logprobs'] }, { top_logprobs: 1 }])(
  'log probabilities that were asked for are in the text, whole and streamed: %j',
  (body) => {
    const all = [likely('Hi'), likely(' you')]
    const part = { type: 'output_text', text: 'Hi you', annotations: [], logprobs: all }
    expect(shown(body)).toEqual({ whole: part, deltas: all.map((one) => [one]), done: all, streamed: part })
  },
)

test('log probabilities that were not asked for are left out', () => {
  const part = { type: 'output_text', text: 'Hi you', annotations: [], logprobs: [] }
  expect(shown({})).toEqual({ whole: part, deltas: [[], []], done: [], streamed: part })
})
