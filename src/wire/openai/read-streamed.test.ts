import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { readStreamed } from './read-streamed.ts'

function streamed(...chunks: readonly (JsonObject | string)[]): Uint8Array {
  const texts = chunks.map((chunk) => (typeof chunk === 'string' ? chunk : JSON.stringify(chunk)))
  return Buffer.from(texts.map((text) => `data: ${text}\n\n`).join(''))
}

const delta = (fields: JsonObject) => ({ id: 'c', choices: [{ index: 0, delta: fields }] })
const call = (index: number, fields: JsonObject) => delta({ tool_calls: [{ index, ...fields }] })
const finished = (reason: string) => ({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: reason }] })
const counted = { id: 'c', choices: [], usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } }

test('reasoning, text and usage are joined to a whole reply', () => {
  const body = streamed(
    delta({ role: 'assistant', content: '' }),
    delta({ reasoning_content: 'Hm' }),
    delta({ reasoning_content: '.' }),
    delta({ content: 'Good ' }),
    delta({ content: 'day.' }),
    finished('stop'),
    counted,
    '[DONE]',
  )
  expect(readStreamed(body)).toMatchObject({
    choices: [
      {
        blocks: [
          { kind: 'thinking', text: 'Hm.' },
          { kind: 'text', text: 'Good day.' },
        ],
        finish: 'stop',
      },
    ],
    usage: { input: 5, output: 3 },
  })
})

test('the arguments of calls are joined, each with its own', () => {
  const body = streamed(
    call(0, { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x"' } }),
    call(1, { id: 'b', type: 'function', function: { name: 'g', arguments: '' } }),
    call(0, { function: { arguments: ':1}' } }),
    call(1, { function: { arguments: '{}' } }),
    finished('tool_calls'),
    '[DONE]',
  )
  expect(readStreamed(body).choices).toEqual([
    {
      blocks: [
        { kind: 'tool-call', id: 'a', name: 'f', argumentsText: '{"x":1}' },
        { kind: 'tool-call', id: 'b', name: 'g', argumentsText: '{}' },
      ],
      finish: 'tool-calls',
    },
  ])
})

test.each([
  ['tool_calls', '{}'],
  ['length', ''],
])('a call without arguments has those of a whole answer that finished with %s', (reason, argumentsText) => {
  const body = streamed(
    call(0, { id: 'a', type: 'function', function: { name: 'f', arguments: '' } }),
    finished(reason),
  )
  expect(readStreamed(body).choices[0]?.blocks).toEqual([{ kind: 'tool-call', id: 'a', name: 'f', argumentsText }])
})

test('a stream that breaks off, and an error in it, are failures', () => {
  expect(() => readStreamed(streamed(delta({ content: 'Good ' })))).toThrow("The model's vendor broke off its answer.")
  const failed = streamed(delta({ content: 'Good ' }), { error: { message: 'busy', code: 'server_error' } })
  expect(() => readStreamed(failed)).toThrow()
})

test('an answer that comes whole all the same is read as one', () => {
  const whole = { choices: [{ message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }] }
  const reply = readStreamed(Buffer.from(JSON.stringify(whole)))
  expect(reply.choices).toEqual([{ blocks: [{ kind: 'text', text: 'Hi' }], finish: 'stop' }])
})
