import { describe, expect, test } from 'bun:test'
import { readChatStream } from './chat-stream.ts'

type Choice = { index?: number; delta?: object | null; finish_reason?: string | null }

const chunk = (...choices: Choice[]) => ({ id: 'chatcmpl-1', model: 'gpt-5', choices })
const calling = (...calls: object[]) => chunk({ index: 0, delta: { tool_calls: calls } })

function read(events: readonly (object | string)[], signal = new AbortController().signal) {
  const lines = events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
  const told: string[] = []
  const body = new Response(lines.join('')).body as ReadableStream<Uint8Array>
  return readChatStream(body, signal, (text) => told.push(text)).then((result) => ({ ...result, told }))
}

describe('a chat read from a stream', () => {
  test('texts are joined by choice, and choices are in their order', async () => {
    const { reply, error, told } = await read([
      chunk({ index: 1, delta: { role: 'assistant', content: 'B' } }),
      chunk({ delta: { content: 'A' } }),
      chunk({ index: 1, delta: { content: 'b', reasoning_content: 'because' }, finish_reason: 'length' }),
      chunk({ index: 0, delta: {}, finish_reason: 'stop' }),
      { ...chunk(), usage: { total_tokens: 7 } },
      { ...chunk(), usage: null },
      '[DONE]',
    ])
    expect({ error, told }).toEqual({ error: undefined, told: ['B', 'A', 'b'] })
    expect(reply).toMatchObject({ id: 'chatcmpl-1', model: 'gpt-5', usage: { total_tokens: 7 } })
    expect(reply.replies).toMatchObject([
      { index: 0, text: 'A', finish: 'stop', more: { reasoning: '' } },
      { index: 1, text: 'Bb', finish: 'length', more: { reasoning: 'because' } },
    ])
  })

  test('the parts of every tool call are joined, whatever kind of tool it calls', async () => {
    const { reply } = await read([
      calling({ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }),
      calling({ index: 0, function: { arguments: '{"at":' } }, { index: 1, id: 'call_2', type: 'custom' }),
      calling({ index: 1, custom: { name: 'run', input: 'ls' } }, { index: 0, function: { arguments: '1}' } }),
      calling({ index: 1, custom: { input: ' -l' } }),
      chunk({ index: 0, delta: {}, finish_reason: 'tool_calls' }),
    ])
    expect(reply.replies[0]?.more['tool_calls']).toEqual([
      { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } },
      { id: 'call_2', type: 'custom', custom: { name: 'run', input: 'ls -l' } },
    ])
  })

  test('parallel calls under one index, or under none, are told apart', async () => {
    const look = { type: 'function', function: { name: 'look', arguments: '' } }
    const run = { type: 'custom', custom: { name: 'run', input: '' } }
    const parts = [
      [{ id: 'a', ...look }],
      [{ id: 'b', ...run }],
      [{ id: 'a', function: { arguments: '{' } }],
      [{ id: '', custom: { input: 'ls' } }],
      [{ id: 'unknown', custom: { input: ' -l' } }],
      [{ id: 'a', function: { name: '', arguments: '}' } }],
    ]
    const expected = [
      { id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } },
      { id: 'b', type: 'custom', custom: { name: 'run', input: 'ls -l' } },
    ]
    for (const index of [0, undefined]) {
      const { reply } = await read(parts.map((calls) => calling(...calls.map((call) => ({ index, ...call })))))
      expect(reply.replies[0]?.more['tool_calls']).toEqual(expected)
    }
    const together = await read([calling({ id: 'a', ...look }, { id: 'b', ...run })])
    expect(together.reply.replies[0]?.more['tool_calls']).toMatchObject([{ id: 'a' }, { id: 'b' }])
  })

  test('calls without ids, each in one piece under one index, are told apart', async () => {
    const calls = ['look', 'listen'].map((name) => ({ function: { name, arguments: '{}' } }))
    const { reply } = await read(calls.map((call) => calling({ index: 0, ...call })))
    expect(reply.replies[0]?.more['tool_calls']).toMatchObject(calls)
  })

  test('a call in the form that tools replaced is joined too', async () => {
    const { reply } = await read([
      chunk({ delta: { function_call: { name: 'look', arguments: '' } } }),
      chunk({ delta: { function_call: { arguments: '{}' } } }),
      chunk({ delta: {}, finish_reason: 'function_call' }),
    ])
    expect(reply.replies[0]?.more).toMatchObject({ function_call: { name: 'look', arguments: '{}' } })
  })

  test('fields that a vendor leaves empty take nothing from what came before', async () => {
    const { reply } = await read([
      calling({ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '{' } }),
      calling({ index: 0, id: null, type: null, function: { name: null, arguments: '}' } }),
      chunk({ delta: { content: null, tool_calls: null, annotations: null } }),
      chunk({ delta: null, finish_reason: 'tool_calls' }),
      { choices: null },
    ])
    expect(reply).toMatchObject({ id: 'chatcmpl-1', model: 'gpt-5' })
    expect(reply.replies).toMatchObject([{ text: '', finish: 'tool_calls' }])
    expect(reply.replies[0]?.more['tool_calls']).toEqual([
      { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } },
    ])
  })

  test('an error in the stream is given as it was written, beside what came before it', async () => {
    const failure = { error: { message: 'It broke.', code: 'upstream_failed' } }
    const { reply, error } = await read([chunk({ delta: { content: 'Half' } }), failure])
    expect(error).toBe(JSON.stringify(failure))
    expect(reply.replies).toMatchObject([{ text: 'Half', finish: null }])
  })

  test('nothing is read for a client that has already left', async () => {
    const { reply } = await read([chunk({ delta: { content: 'Hi' } })], AbortSignal.abort())
    expect(reply.replies).toEqual([])
  })
})
