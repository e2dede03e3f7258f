import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { createBill } from './bill.ts'
import { completionOf, openSandbox } from './testing.ts'

const { sandbox, say, post, bill, clearBill } = openSandbox()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

describe('the bill', () => {
  // "Say it" is 2 tokens and the message's frame 3. 5 x 2 + 4 x 10 nano-dollars.
  test('a call has one line with its units and exact cost', async () => {
    await say('Say it', { max_tokens: 4 }, { ref: 'attempt-1' })
    expect(await bill()).toEqual([
      {
        ref: 'attempt-1',
        model: 'plain',
        status: 200,
        units: { input: 5, cachedInput: 0, output: 4, reasoning: 0 },
        cost: '0.00000005',
      },
    ])
  })

  // Base prices: 5 x 1,001 + 1 x 3,333 + 7,499 = 15,837 pico, rounded once to 16 nano.
  // Above 10 input tokens: 13 x 2,000 + 1 x 6,000 + 7,499 = 39,499, 39 nano.
  // Above 50: 53 x 3,000 + 9,000 + 7,499 = 175,499.
  test.each([
    [2, '0.000000016'],
    [10, '0.000000039'],
    [50, '0.000000175'],
  ])('the cost is rounded once and priced by the tier that an input of %d words reaches', async (words, cost) => {
    await say('word '.repeat(words).trim(), { model: 'tiered', max_tokens: 1 })
    expect((await bill()).map((line) => [line.units.input, line.cost])).toEqual([[words + 3, cost]])
  })

  test('half a nano-dollar rounds up and less rounds down', () => {
    const own = createBill()
    const units = { input: 1, cachedInput: 0, output: 0, reasoning: 0 }
    for (const input of [499n, 500n, 1_499n, 123_456_789_000_000_000n]) {
      own.add({ ref: null, model: 'm', status: 200, units, prices: { input, output: 0n } })
    }
    expect(own.lines().map((line) => line.cost)).toEqual(['0', '0.000000001', '0.000000001', '123456.789'])
  })

  test('reasoning is part of the output and costs as much', async () => {
    await say('Think', { model: 'thinker', reasoning_effort: 'low', max_completion_tokens: 20 })
    const [line] = await bill()
    expect(line).toMatchObject({ units: { input: 4, output: 20, reasoning: 16 }, cost: '0.000000208' })
  })

  test('the choices of one call share the prompt and add up their output', async () => {
    const { usage } = await completionOf(say('Say it', { n: 3, max_tokens: 7 }))
    expect([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens]).toEqual([5, 21, 26])
    expect((await bill())[0]?.units).toMatchObject({ input: 5, output: 21 })
  })

  test('a failed call has a line and costs nothing', async () => {
    await say('hi', { model: 'unheard-of' })
    await say('hi', {}, { key: 'bad-key' })
    await say('hi', { n: 0 })
    await say('sandbox:fail=insufficient_quota')
    await say('sandbox:status=503')
    await post('{', {})
    const lines = await bill()
    expect(lines.map((line) => line.status)).toEqual([404, 401, 400, 429, 503, 400])
    expect(new Set(lines.map((line) => line.cost))).toEqual(new Set(['0']))
  })

  test('the line of one call is found by its ref', async () => {
    await say('one', {}, { ref: 'a' })
    await say('two', {}, { ref: 'b' })
    const response = await fetch(`${sandbox.url}/__bill?ref=b`)
    expect(await response.json()).toMatchObject({ data: [{ ref: 'b' }] })
  })
})

describe('the prompt cache', () => {
  const long = 'word '.repeat(1_500).trim()

  async function cached(tail: string, more: object = {}, key = 'cache-key'): Promise<number> {
    const messages = [
      { role: 'system', content: long },
      { role: 'user', content: tail },
    ]
    const { usage } = await completionOf(post({ model: 'plain', max_tokens: 1, messages, ...more }, { key }))
    return usage.prompt_tokens_details.cached_tokens
  }

  test('a shared prefix of at least 1,024 tokens is read back in blocks of 128', async () => {
    expect(await cached('first')).toBe(0)
    expect(await cached('second')).toBe(1_408) // 11 blocks of the 1,503 tokens shared
    expect(await cached('second', {}, 'other-key')).toBe(0)
    expect(await cached('second', { prompt_cache_key: 'p' })).toBe(0)
    expect(await cached('third', { prompt_cache_key: 'p' })).toBe(1_408)
    const lines = await bill()
    // 1,507 tokens of prompt; 99 x 2 + 1,408 x 1 + 1 x 10 nano.
    expect(lines[1]).toMatchObject({ units: { input: 99, cachedInput: 1_408, output: 1 }, cost: '0.000001616' })
  })

  test('a short prompt is not cached', async () => {
    const { usage } = await completionOf(say('short').then(() => say('short')))
    expect(usage.prompt_tokens_details.cached_tokens).toBe(0)
  })
})
