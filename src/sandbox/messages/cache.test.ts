import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Message, messageOf, openMessages } from './testing.ts'

const { sandbox, say, bill, clearBill } = openMessages()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const long = 'word '.repeat(1_500).trim()
const short = { max_tokens: 1 }

function systemOf(ttl?: string): object[] {
  return [{ type: 'text', text: long, cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } }]
}

/** Fresh input, read, written for five minutes, written for an hour. */
function inputOf({ usage }: Message): number[] {
  const { ephemeral_5m_input_tokens: minutes, ephemeral_1h_input_tokens: hour } = usage.cache_creation
  expect(usage.cache_creation_input_tokens).toBe(minutes + hour)
  return [usage.input_tokens, usage.cache_read_input_tokens, minutes, hour]
}

const ask = async (key: string, text: string, more: object): Promise<number[]> =>
  inputOf(await messageOf(say(text, { ...short, ...more }, { head: { 'x-api-key': key } })))

describe('the prompt cache', () => {
  test('a marked prompt is written to and read from the cache, each at its own price', async () => {
    expect(await ask('one', 'Say it', { system: systemOf() })).toEqual([5, 0, 1_500, 0])
    expect(await ask('one', 'Another', { system: systemOf() })).toEqual([5, 1_500, 0, 0])
    expect(await ask('two', 'Say it', { system: systemOf('1h') })).toEqual([5, 0, 0, 1_500])
    expect(await ask('two', 'Say it', { system: long })).toEqual([1_505, 0, 0, 0])
    const lines = await bill()
    // In nano-dollars 2 in, 1 read, 3 for five minutes, 4 for an hour, 10 out.
    expect(lines.map(({ cost }) => cost)).toEqual(['0.00000452', '0.00000152', '0.00000602', '0.00000302'])
    expect(lines[0]?.units).toMatchObject({ input: 5, cachedInput: 0, cacheWrite5m: 1_500, cacheWrite1h: 0 })
  })

  test('a cache mark on the request itself covers a growing conversation', async () => {
    const more = { cache_control: { type: 'ephemeral' } }
    const first = { role: 'user', content: long }
    expect(await ask('talk', '', { ...more, messages: [first] })).toEqual([0, 0, 1_503, 0])
    const messages = [first, { role: 'assistant', content: 'Yes' }, { role: 'user', content: 'And' }]
    expect(await ask('talk', '', { ...more, messages })).toEqual([0, 1_503, 8, 0])
  })

  test('max_tokens 0 fills the cache without an answer', async () => {
    const warm = await messageOf(say('hi', { max_tokens: 0, system: systemOf() }, { head: { 'x-api-key': 'warm' } }))
    expect([warm.content, warm.stop_reason, warm.usage.output_tokens]).toEqual([[], 'max_tokens', 0])
    expect(await ask('warm', 'hi', { system: systemOf() })).toEqual([4, 1_500, 0, 0])
  })

  test('a prompt below 1,024 tokens is not cached', async () => {
    const system = [{ type: 'text', text: 'Be kind', cache_control: { type: 'ephemeral' } }]
    expect(await ask('short', 'Say it', { system })).toEqual([7, 0, 0, 0])
    expect(await ask('short', 'Say it', { system })).toEqual([7, 0, 0, 0])
  })
})
