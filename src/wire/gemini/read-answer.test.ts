import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import { markGoogle, type ReplyEvent } from '../../capabilities/conversation.ts'
import { openReader, readAnswer } from './read-answer.ts'

const bytes = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
const answer = (value: unknown) => readAnswer(bytes(value))
const parts = (...written: readonly object[]) => ({ content: { role: 'model', parts: written } })
const reply = (candidate: object, more: object = {}) => ({ candidates: [candidate], responseId: 'r1', ...more })

function refusal(value: unknown) {
  const { kind, message } = errorOf(() => answer(value))
  return { kind, message }
}

/** The events of a stream of these responses. */
function follow(...responses: readonly unknown[]): ReplyEvent[] {
  const reader = openReader()
  return responses.flatMap((response) => {
    const data = typeof response === 'string' ? response : `data: ${JSON.stringify(response)}\r\n\r\n`
    return reader.read(Buffer.from(data))
  })
}
const kinds = (events: readonly ReplyEvent[]): string[] => events.map(({ kind }) => kind)
const finishes = (events: readonly ReplyEvent[]) =>
  events.flatMap((event) => (event.kind === 'choice-finish' ? [event.finish] : []))

const f = { functionCall: { name: 'f', args: { b: 1, a: 'ü' } }, thoughtSignature: 'c2ln' }
const g = { functionCall: { name: 'g' } }

describe('a whole answer', () => {
  test('tool arguments keep the digits of numbers that a double cannot hold', () => {
    const written =
      '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"id":12345678901234567890}}}]}}]}'
    expect(answer(written).choices[0]?.blocks).toMatchObject([{ argumentsText: '{"id":12345678901234567890}' }])
    expect(follow(`data: ${written}\r\n\r\n`)).toContainEqual(
      expect.objectContaining({ kind: 'tool-call-delta', text: '{"id":12345678901234567890}' }),
    )
  })

  test('reasoning, text, images and tool calls come in their order', () => {
    const written = parts(
      { text: 'hm, ', thought: true },
      { text: 'so', thought: true },
      // The draft of an image is no answer.
      { inlineData: { mimeType: 'image/png', data: 'ZHJhZnQ=' }, thought: true },
      { text: 'Hel' },
      { text: '' },
      { text: 'lo', thoughtSignature: 'dGV4dA==' },
      { inlineData: { mimeType: 'image/png', data: 'iVBORw==' } },
      { inlineData: { mimeType: 'audio/L16', data: 'AAAA' } },
      f,
      g,
    )
    const { choices, usage } = answer(reply({ ...written, finishReason: 'STOP', index: 0 }))
    expect([usage, choices.length]).toEqual([undefined, 1])
    expect(choices[0]).toEqual({
      blocks: [
        { kind: 'thinking', text: 'hm, so' },
        { kind: 'text', text: 'Hello' },
        { kind: 'image', media: { kind: 'bytes', mediaType: 'image/png', base64: 'iVBORw==' } },
        {
          kind: 'tool-call',
          id: expect.stringMatching(/^call_[0-9a-f]{24}$/),
          name: 'f',
          argumentsText: '{"b":1,"a":"ü"}',
          signature: markGoogle('c2ln'),
        },
        { kind: 'tool-call', id: expect.stringMatching(/^call_[0-9a-f]{24}$/), name: 'g', argumentsText: '{}' },
      ],
      finish: 'tool-calls',
    })
  })

  test('several choices come in the order of their index, with the usage', () => {
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 2 }
    const candidates = [1, 0].map((index) => ({ ...parts({ text: String(index) }), finishReason: 'STOP', index }))
    const { choices, usage } = answer({ candidates, usageMetadata })
    expect(choices.map(({ blocks }) => blocks)).toEqual([[{ kind: 'text', text: '0' }], [{ kind: 'text', text: '1' }]])
    expect(usage).toMatchObject({ input: 5, output: 2 })
  })

  test('a blocked prompt gives an empty choice that ends as a refusal', () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 5 } }
    expect(answer(blocked)).toMatchObject({ choices: [{ blocks: [], finish: 'refusal' }], usage: { input: 5 } })
  })

  test('an answer used up by thinking has an empty choice with the finish length', () => {
    expect(answer(reply({ content: { role: 'model' }, finishReason: 'MAX_TOKENS' })).choices).toEqual([
      { blocks: [], finish: 'length' },
    ])
  })

  test('logprobs have the form of the common protocol', () => {
    const token = { token: 'é', tokenId: 7, logProbability: -0.5 }
    const logprobsResult = { chosenCandidates: [token], topCandidates: [{ candidates: [token] }] }
    const shown = { token: 'é', logprob: -0.5, bytes: [195, 169] }
    const [choice] = answer(reply({ ...parts({ text: 'é' }), finishReason: 'STOP', logprobsResult })).choices
    expect(choice?.logprobs).toEqual({ content: [{ ...shown, top_logprobs: [shown] }], refusal: null })
  })

  const error = { error: { code: 500, message: 'on fire', status: 'INTERNAL' } }
  test.each([
    ['an error', error, 'on fire'],
    ['an error in a list', [error], 'on fire'],
    ['an error without a message', { error: {} }, "The model's vendor reported an error."],
    ['a web page', '<html>', "The model's vendor sent no answer that can be read."],
    ['an empty list', [], "The model's vendor sent no answer that can be read."],
    ['an object without candidates', { usageMetadata: {} }, "The model's vendor sent an answer without candidates."],
    [
      'a malformed function call',
      reply({ finishReason: 'MALFORMED_FUNCTION_CALL' }),
      'The model failed to form an answer (MALFORMED_FUNCTION_CALL).',
    ],
  ])('%s instead of an answer is upstream-failed', (_, body, message) => {
    expect(refusal(body)).toEqual({ kind: 'upstream-failed', message })
  })
})

describe('the finish reason', () => {
  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'refusal'],
    ['RECITATION', 'refusal'],
    ['BLOCKLIST', 'refusal'],
    ['PROHIBITED_CONTENT', 'refusal'],
    ['SPII', 'refusal'],
    ['IMAGE_SAFETY', 'refusal'],
    ['IMAGE_OTHER', 'refusal'],
    ['IMAGE_PROHIBITED_CONTENT', 'refusal'],
    ['IMAGE_RECITATION', 'refusal'],
    ['MODEL_ARMOR', 'refusal'],
    ['LANGUAGE', 'stop'],
    ['OTHER', 'stop'],
    ['NO_IMAGE', 'stop'],
    ['MALFORMED_FUNCTION_CALL', 'stop'],
    ['SOMETHING_NEW', 'stop'],
    [undefined, 'stop'],
  ] as const)('%s after a text becomes the matching finish', (finishReason, finish) => {
    expect(answer(reply({ ...parts({ text: 'x' }), finishReason })).choices[0]?.finish).toBe(finish)
  })

  test.each(['UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MISSING_THOUGHT_SIGNATURE', 'MALFORMED_RESPONSE'])(
    '%s is a failure, unless there is a text before it',
    (finishReason) => {
      expect(refusal(reply({ finishReason })).message).toContain(finishReason)
      expect(answer(reply({ ...parts({ text: 'x' }), finishReason })).choices[0]?.finish).toBe('stop')
    },
  )

  test.each([
    ['STOP', 'tool-calls'],
    ['MAX_TOKENS', 'length'],
    ['UNEXPECTED_TOOL_CALL', 'tool-calls'],
    [undefined, 'tool-calls'],
  ] as const)('%s after a tool call becomes the matching finish', (finishReason, finish) => {
    expect(answer(reply({ ...parts(g), finishReason })).choices[0]?.finish).toBe(finish)
  })
})

const idsOf = (events: readonly ReplyEvent[]) =>
  events.flatMap((event) => (event.kind === 'tool-call-start' ? [event.id] : []))
const given = (id: string) => idsOf(follow(reply(parts({ functionCall: { id, name: 'f' } }))))

describe('the id of a tool call', () => {
  test('the id is the same in a whole answer and a stream, and no other call has it', () => {
    const whole = answer(reply({ ...parts(f, f), finishReason: 'STOP' }))
    const ids = whole.choices[0]?.blocks.map((block) => (block.kind === 'tool-call' ? block.id : '')) ?? []
    expect(new Set(ids).size).toBe(2)
    expect(idsOf(follow(reply(parts(f)), reply(parts(f))))).toEqual(ids)
    expect(idsOf(follow(reply(parts(f), { responseId: 'r2' })))).not.toContain(ids[0])
  })

  test('the id is derived from the call if the reply has no id', () => {
    const unnamed = { candidates: [parts(f, g)] }
    expect(idsOf(follow(unnamed))).toEqual(idsOf(follow(unnamed)))
    expect(new Set(idsOf(follow(unnamed))).size).toBe(2)
  })

  test("the vendor's id is kept if it is valid and replaced otherwise", () => {
    expect(given('8f2-k_1')).toEqual(['8f2-k_1'])
    expect(given('a.b:c')).toEqual([expect.stringMatching(/^call_[0-9a-f]{24}$/)])
    expect(given('a.b:c')).not.toEqual(given('a.b:d'))
  })
})

const usage = (count: number) => ({ usageMetadata: { promptTokenCount: 5, candidatesTokenCount: count } })

describe('a stream', () => {
  test('each response gives its new content and the usage so far', () => {
    const events = follow(
      reply(parts({ text: 'hm', thought: true }), usage(0)),
      reply(parts({ text: 'Hi' }), usage(1)),
      reply(parts(f), usage(3)),
      reply({ ...parts({ text: '', thoughtSignature: 'c2ln' }), finishReason: 'STOP' }, usage(4)),
    )
    expect(kinds(events)).toEqual([
      'reply-start',
      'thinking-delta',
      'usage-count',
      'text-delta',
      'usage-count',
      'tool-call-start',
      'tool-call-delta',
      'usage-count',
      'usage-count',
      'choice-finish',
    ])
    expect(events.at(-2)).toMatchObject({ usage: { input: 5, output: 4 } })
    expect(finishes(events)).toEqual(['tool-calls'])
  })

  test('a stream without a finish reason has no end', () => {
    expect(kinds(follow(reply(parts({ text: 'Hi' }))))).toEqual(['reply-start', 'text-delta'])
    expect(finishes(follow(reply({ ...parts({ text: 'Hi' }), finishReason: 'FINISH_REASON_UNSPECIFIED' })))).toEqual([])
  })

  test('a stream ends once, and usage that follows the end is still read', () => {
    const end = reply({ finishReason: 'STOP' })
    const events = follow(reply(parts({ text: 'Hi' })), end, reply({ finishReason: 'STOP' }, usage(9)))
    expect(finishes(events)).toEqual(['stop'])
    expect(events.at(-1)).toMatchObject({ kind: 'usage-count', usage: { output: 9 } })
  })

  test('a blocked prompt ends the stream once, as a refusal', () => {
    const blocked = { promptFeedback: { blockReason: 'JAILBREAK' }, ...usage(0) }
    expect(kinds(follow(blocked, blocked))).toEqual(['reply-start', 'usage-count', 'choice-finish', 'usage-count'])
    expect(finishes(follow(blocked))).toEqual(['refusal'])
  })

  test.each([
    [': ping\r\n\r\n', ['heartbeat']],
    ['event: x\r\n\r\n', ['heartbeat']],
    ['data: []\r\n\r\n', ['heartbeat']],
    [': ping\r\ndata:{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}\r\n\r\n', ['reply-start', 'text-delta']],
    ['data: {"candidates":[{"content":{"parts":[{"text":"unfini\r\n\r\n', ['failure']],
    ['data: {"error":{"code":500,"message":"on fire"}}\r\n\r\n', ['failure']],
    ['data: [{"error":{"code":500,"message":"on fire"}}]\r\n\r\n', ['failure']],
  ])('the unusual event %j is read as a heartbeat, content or a failure', (event, told) => {
    expect(kinds(follow(event))).toEqual(told)
  })

  test('a malformed tool call fails the stream only if nothing was said before it', () => {
    const blunder = reply({ finishReason: 'MALFORMED_FUNCTION_CALL' }, usage(3))
    expect(kinds(follow(blunder))).toEqual(['reply-start', 'usage-count', 'failure'])
    expect(finishes(follow(reply(parts({ text: 'Hi' })), blunder))).toEqual(['stop'])
    const thought = reply(parts({ text: 'Hm', thought: true }))
    expect(kinds(follow(thought, blunder))).toEqual(['reply-start', 'thinking-delta', 'usage-count', 'failure'])
  })
})
