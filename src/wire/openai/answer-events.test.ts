import { expect, test } from 'bun:test'
import type { Json, JsonObject } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import { objectIn, objectsIn, parseLoosely } from '../loose.ts'
import { answerEvents } from './answer-events.ts'
import { passStream } from './chat-stream.ts'
import { openReader } from './reply-reader.ts'
import { plainAsk } from './testing.ts'

const call = (index: number, name: string, more = {}) => ({
  id: `call_${index}`,
  type: 'function',
  function: { name, arguments: '{"at":1}', ...more },
})

function answerOf(message: JsonObject, more: JsonObject = {}): Buffer {
  const choices = [{ message: { role: 'assistant', ...message }, finish_reason: 'stop', ...more }]
  return Buffer.from(JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices }))
}

function choicesIn(body: Uint8Array): Json[] {
  const data = answerEvents(body, 2).map((event) => dataOf(event))
  expect(data.at(-1)).toBe('[DONE]')
  return data.slice(0, -1).flatMap((text) => {
    const chunk = JSON.parse(text) as { object: string; id: string; choices: Json[] }
    expect(chunk).toMatchObject({ object: 'chat.completion.chunk', id: 'c1' })
    expect(chunk.choices).toHaveLength(1)
    return chunk.choices
  })
}

const last = (reason: string) => ({ index: 0, delta: {}, finish_reason: reason })

test.each([
  ['words', { content: 'Hi', refusal: null }, {}, [{ role: 'assistant', content: 'Hi' }], 'stop'],
  [
    'nothing, at the limit',
    { content: '' },
    { finish_reason: 'length' },
    [{ role: 'assistant', content: '' }],
    'length',
  ],
  ['no finish reason', { content: 'Hi' }, { finish_reason: null }, [{ role: 'assistant', content: 'Hi' }], 'stop'],
  [
    'reasoning under two names, which comes first',
    { content: 'Hi', reasoning_content: 'hm', reasoning: 'hm' },
    {},
    [{ role: 'assistant', reasoning_content: 'hm', reasoning: 'hm' }, { content: 'Hi' }],
    'stop',
  ],
  [
    'calls, with an object as arguments and a wrong index, and without any',
    {
      tool_calls: [
        call(0, 'a'),
        { ...call(1, 'b', { arguments: { at: 1 } }), index: 0 },
        call(2, 'c', { arguments: null }),
      ],
      content: 'I call.',
    },
    { finish_reason: null },
    [
      { role: 'assistant', content: 'I call.' },
      {
        tool_calls: [
          { index: 0, ...call(0, 'a') },
          { index: 1, ...call(1, 'b') },
          { index: 2, ...call(2, 'c', { arguments: '' }) },
        ],
      },
    ],
    'tool_calls',
  ],
  [
    'a call in the old form, with an object as arguments',
    { content: null, function_call: { name: 'a', arguments: { at: 1 } } },
    { finish_reason: null },
    [{ role: 'assistant', function_call: { name: 'a', arguments: '{"at":1}' } }],
    'function_call',
  ],
  [
    'words and an image',
    { content: 'Hi', images: [{ type: 'image_url' }] },
    {},
    [{ role: 'assistant', content: 'Hi' }, { images: [{ type: 'image_url' }] }],
    'stop',
  ],
  [
    'words beside lists with nothing in them',
    { reasoning_details: [], content: 'Hi', images: [], annotations: [], tool_calls: [] },
    { finish_reason: null },
    [{ role: 'assistant', content: 'Hi' }],
    'stop',
  ],
  ['words beside an empty delta', { content: 'Hi' }, { delta: {} }, [{ role: 'assistant', content: 'Hi' }], 'stop'],
  ['nothing at all', {}, {}, [{ role: 'assistant' }], 'stop'],
] as const)('an answer of %s becomes its deltas and a finish', (_name, message, more, deltas, reason) => {
  const said = deltas.map((delta) => ({ index: 0, delta, finish_reason: null }))
  expect(choicesIn(answerOf(message as JsonObject, more))).toEqual([...said, last(reason)] as Json[])
})

test('what a choice has beside its message comes once, and every choice keeps its place', () => {
  const logprobs = { content: [{ token: 'Hi', logprob: -1 }] }
  const choices = ['a', 'b'].map((content) => ({ message: { content }, logprobs, finish_reason: 'stop' }))
  const body = Buffer.from(JSON.stringify({ id: 'c1', choices }))
  expect(choicesIn(body)).toMatchObject([
    { index: 0, delta: { content: 'a' }, logprobs },
    { index: 1, delta: { content: 'b' }, logprobs },
    { index: 0, finish_reason: 'stop' },
    { index: 1, finish_reason: 'stop' },
  ])
})

test('the logprobs of an answer come with its words, behind its reasoning, and are read there', () => {
  const logprobs = { content: [{ token: 'Hi', logprob: -1 }] }
  const body = answerOf({ content: 'Hi', reasoning_content: 'hm' }, { logprobs })
  const [thoughts, ...later] = choicesIn(body)
  expect(thoughts).toEqual({ index: 0, delta: { role: 'assistant', reasoning_content: 'hm' }, finish_reason: null })
  expect(later).toMatchObject([{ delta: { content: 'Hi' }, logprobs }, last('stop')])
  const reader = openReader()
  const read = answerEvents(body, 1).flatMap((event) => reader.read(event))
  expect(read).toContainEqual({ kind: 'text-delta', choice: 0, text: 'Hi', logprobs })
})

test('what stands beside the choices is not repeated for each of them', () => {
  const choices = Array.from({ length: 128 }, (_, index) => ({ index, message: { content: 'a' } }))
  const [id, citations] = ['i'.repeat(10_000), ['x'.repeat(10_000)]]
  const body = Buffer.from(JSON.stringify({ id, citations, choices }))
  expect(Buffer.concat(answerEvents(body, 128)).length).toBeLessThan(3 * body.length)
})

test('no more choices are streamed than were asked for, however many there are', () => {
  const id = 'i'.repeat(400)
  const body = Buffer.from(`{"id":"${id}","choices":[{"message":{"content":"a"}}${',{}'.repeat(10_000)}]}`)
  const events = answerEvents(body, 1)
  expect(events.flatMap((event) => objectsIn(objectIn(parseLoosely(dataOf(event)))['choices']))).toEqual([
    { index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null },
    last('stop'),
  ])
  expect(Buffer.concat(events).length).toBeLessThan(body.length)
})

test('all that was made counts as output where the server gives no usage', () => {
  const words = { content: 'w'.repeat(100), reasoning_content: 't'.repeat(100) }
  const body = answerOf({ ...words, images: [{ type: 'image_url' }], tool_calls: [call(0, 'a')] })
  const stream = passStream(plainAsk)
  for (const event of answerEvents(body, 1)) stream.take(event)
  expect(stream.facts).toMatchObject({ finished: true, ended: true, outputEvents: 4, images: 1 })
  expect(stream.facts.outputBytes).toBeGreaterThan(190)
  const reader = openReader()
  const read = answerEvents(body, 1).flatMap((event) => reader.read(event))
  expect(read.map(({ kind }) => kind)).toEqual([
    'reply-start',
    'thinking-delta',
    'text-delta',
    'tool-call-start',
    'tool-call-delta',
    'choice-finish',
    'reply-end',
  ])
})
