import { expect, test } from 'bun:test'
import type { Json } from '../../base/json.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { openReader } from './reply-reader.ts'

/** The events read from these choices, one choice per chunk, without the start. */
function read(...choices: Json[]): ReplyEvent[] {
  const reader = openReader()
  const events = choices.flatMap((choice) => {
    return [...reader.read(Buffer.from(`data: ${JSON.stringify({ id: 'c1', choices: [choice] })}\n\n`))]
  })
  expect(events[0]).toEqual({ kind: 'reply-start' })
  return events.slice(1)
}

const calls = (...deltas: Json[]) => ({ index: 0, delta: { tool_calls: deltas } })
const begun = (index: number, id: string, name: string) => ({ index, id, function: { name, arguments: '' } })
const more = (index: number, text: string) => ({ index, function: { arguments: text } })

const start = (call: number, id: string, name: string): ReplyEvent => {
  return { kind: 'tool-call-start', choice: 0, call, id, name }
}
const delta = (call: number, text: string): ReplyEvent => ({ kind: 'tool-call-delta', choice: 0, call, text })

test('interleaved calls are told apart by their index', () => {
  expect(
    read(calls(begun(0, 'a', 'f')), calls(begun(1, 'b', 'g')), calls(more(0, '1')), calls(more(1, '2'), more(0, '3'))),
  ).toEqual([start(0, 'a', 'f'), start(1, 'b', 'g'), delta(0, '1'), delta(1, '2'), delta(0, '3')])
})

test('calls without an index are told apart by position, and calls that share one by id', () => {
  const { index: _, ...placed } = begun(0, 'a', 'f')
  expect(read(calls(placed, { ...placed, id: 'b' }))).toEqual([start(0, 'a', 'f'), start(1, 'b', 'f')])
  expect(read(calls(begun(0, 'a', 'f')), calls(begun(0, 'b', 'g')), calls(more(0, '1')))).toEqual([
    start(0, 'a', 'f'),
    start(1, 'b', 'g'),
    delta(1, '1'),
  ])
})

test('a call without an id gets one that is unique to the reply, and keeps its signature', () => {
  const signed = { ...begun(0, '', 'f'), extra_content: { google: { thought_signature: 's' } } }
  expect(read(calls(signed))).toEqual([
    { ...start(0, expect.stringMatching(/^call_\w{24}$/), 'f'), signature: expect.stringContaining('s') } as ReplyEvent,
  ])
  const idsOf = (replyId: string) => {
    const chunk = { id: replyId, choices: [calls(begun(0, '', 'f'), begun(1, '', 'f'))] }
    const events = [...openReader().read(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`))]
    return events.flatMap((event) => (event.kind === 'tool-call-start' ? [event.id] : []))
  }
  expect(idsOf('c1')).toEqual(idsOf('c1'))
  expect(new Set([...idsOf('c1'), ...idsOf('c2')]).size).toBe(4)
})

test('arguments that come as an object are written as JSON text', () => {
  const whole = { index: 0, id: 'a', function: { name: 'f', arguments: { city: 'Oslo' } } }
  expect(read(calls(whole))).toEqual([start(0, 'a', 'f'), delta(0, '{"city":"Oslo"}')])
})

const finish = (reason: string) => ({ index: 0, delta: {}, finish_reason: reason })

test('an empty finish_reason is ignored', () => {
  expect(read(finish(''), finish('length'))).toEqual([{ kind: 'choice-finish', choice: 0, finish: 'length' }])
})

test('an empty list of tool calls is not a call, and the reply finishes with stop', () => {
  const said = { index: 0, delta: { content: 'Hi', tool_calls: [] } }
  expect(read(said, finish('stop'))).toEqual([
    { kind: 'text-delta', choice: 0, text: 'Hi' },
    { kind: 'choice-finish', choice: 0, finish: 'stop' },
  ])
})

test('unreadable events and error events are failures', () => {
  for (const said of ['{"a":', '[]', '{"error":{"message":"no"}}']) {
    expect([...openReader().read(Buffer.from(`data: ${said}\n\n`))]).toMatchObject([{ kind: 'failure' }])
  }
  const inChoice = 'data: {"choices":[{"delta":{},"finish_reason":"error","error":{"message":"no"}}]}'
  for (const said of [
    inChoice,
    'data: {"error":"no"}',
    'event: error\ndata: {"message":"no"}',
    'event: error\ndata: no',
  ]) {
    const failure = { kind: 'failure', error: { message: 'no' } }
    expect([...openReader().read(Buffer.from(`${said}\n\n`))]).toMatchObject([failure])
  }
})

const part = (text: string) => calls({ index: 0, id: '', function: { name: 'f', arguments: text } })

test('whole calls without ids that share an index are told apart, and one in parts that repeat its name stays one', () => {
  const any = expect.stringMatching(/^call_\w{24}$/) as unknown as string
  expect(read(part('{"x":1}'), part('{"x":2}'))).toEqual([
    start(0, any, 'f'),
    delta(0, '{"x":1}'),
    start(1, any, 'f'),
    delta(1, '{"x":2}'),
  ])
  expect(read(part('{"x"'), part(':1}'), part(''))).toEqual([start(0, any, 'f'), delta(0, '{"x"'), delta(0, ':1}')])
})

test('the usage inside a choice counts where the chunk has none of its own', () => {
  const usage = { prompt_tokens: 5, completion_tokens: 2 }
  expect(read({ ...finish('stop'), usage }).at(-1)).toMatchObject({
    kind: 'usage-count',
    usage: { input: 5, output: 2 },
  })
})

test('a call whose name comes late starts with its name, and then gives the arguments that came before it', () => {
  const unnamed = { index: 0, id: 'a', function: { name: '', arguments: '{"x"' } }
  const named = { index: 0, id: 'a', function: { name: 'f', arguments: ':1' } }
  expect(read(calls(unnamed), calls(begun(1, 'b', 'g')), calls(named), calls(more(0, '}')))).toEqual([
    start(0, 'b', 'g'),
    start(1, 'a', 'f'),
    delta(1, '{"x":1'),
    delta(1, '}'),
  ])
})

test('a call that never gets a name is left out, and does not make the reply end with calls', () => {
  expect(read(calls(begun(0, '', '')), finish('stop'))).toEqual([{ kind: 'choice-finish', choice: 0, finish: 'stop' }])
})

test('arguments that are repeated after they were complete are left out', () => {
  const named = { index: 0, id: 'a', function: { name: 'f', arguments: '{"x":1}' } }
  const once = [start(0, 'a', 'f'), delta(0, '{"x"'), delta(0, ':1}')]
  const parts = [calls(begun(0, 'a', 'f')), calls(more(0, '{"x"')), calls(more(0, ':1}'))]
  expect(read(...parts, calls(more(0, '{"x":1}')))).toEqual(once)
  expect(read(...parts, calls(named))).toEqual(once)
  // What is incomplete goes on, whatever it goes on with.
  expect(read(calls(begun(0, 'a', 'f')), calls(more(0, '{"x":{}')), calls(more(0, '{}')))).toHaveLength(3)
})
