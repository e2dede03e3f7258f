import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { nano, pico } from '../base/money.ts'
import { rated, type Counts, type PriceList, type Rates, type Unit, type Usage } from '../capabilities/usage.ts'
import { affordableOutput, holdFor, priceOf, priceOfParts, sellsVideo, sellsImage } from './price.ts'

const list = (rates: Rates, tiers: PriceList['tiers'] = []): PriceList => ({
  version: 'v',
  rates,
  tiers,
  perImage: {},
  perSecond: {},
  perVideo: {},
  perVideoToken: {},
})

/**
 * The same sum by other means: decimal text, multiplied and added digit by digit as one does on paper, and rounded by
 * looking at the digit behind the last. It shares no arithmetic with what it checks.
 */
function onPaper(counts: Counts, rates: Readonly<Record<string, bigint>>): string {
  let sum = '0'
  for (const [unit, count] of Object.entries(counts)) sum = add(sum, times(String(count), String(rates[unit] ?? 0n)))
  const padded = sum.padStart(4, '0')
  const whole = padded.slice(0, -3)
  return Number(padded.at(-3)) >= 5 ? add(whole, '1') : whole.replace(/^0+(?=\d)/, '')
}

function add(a: string, b: string): string {
  let carry = 0
  let text = ''
  for (let i = 1; i <= Math.max(a.length, b.length) || carry > 0; i++) {
    const digit = Number(a.at(-i) ?? 0) + Number(b.at(-i) ?? 0) + carry
    text = String(digit % 10) + text
    carry = Math.floor(digit / 10)
  }
  return text.replace(/^0+(?=\d)/, '')
}

function times(a: string, b: string): string {
  let sum = '0'
  for (let i = 1; i <= b.length; i++) {
    let row = '0'
    for (let n = 0; n < Number(b.at(-i)); n++) row = add(row, a)
    sum = add(sum, row + '0'.repeat(i - 1))
  }
  return sum.replace(/^0+(?=\d)/, '')
}

const rate = fc.bigInt({ min: 0n, max: 10n ** 10n }).map(pico)
const count = fc.integer({ min: 0, max: 10_000_000 })
const billed = ['input', 'cachedInput', 'cacheWrite', 'output', 'request'] as const satisfies readonly Unit[]

test('output after reasoning is billed entirely at the thinking rate where the list has one', () => {
  const rates = { input: pico(1_000n), output: pico(2_000n), thinkingOutput: pico(5_000n) }
  const dear = list(rates, [{ aboveInputTokens: 100, rates: { output: pico(3_000n), thinkingOutput: pico(9_000n) } }])
  expect(priceOf({ input: 10, output: 8, reasoning: 0 }, dear)).toBe(nano(26n))
  // A vendor that reports no reasoning at all has not counted any.
  expect(priceOf({ input: 10, output: 8 }, dear)).toBe(nano(26n))
  expect(priceOf({ input: 10, output: 8, reasoning: 6 }, dear)).toBe(nano(50n))
  expect(priceOf({ input: 101, output: 8, reasoning: 6 }, dear)).toBe(nano(173n))
  // Whether the model will think is not known in advance.
  expect(holdFor({ input: 10, output: 8, request: 0 }, dear)).toBe(nano(50n))
  expect(affordableOutput(nano(60n), { input: 10 }, dear)).toBe(10)
  expect(priceOf({ output: 8, reasoning: 6 }, list({ output: pico(2_000n) }))).toBe(nano(16n))
})

const each = <T>(names: readonly string[], of: T) => Object.fromEntries(names.map((name) => [name, of]))
const sum = (of: Usage, among: readonly Unit[]) => among.reduce((all, unit) => all + (of[unit] ?? 0), 0)
const priceOfOne = (unit: Unit, rates: Rates) => priceOf({ [unit]: 1 }, list(rates))

describe('a price', () => {
  test('a price equals the sum on paper, rounded once and half up', () => {
    const rates = fc.record({ input: rate, cachedInput: rate, cacheWrite: rate, output: rate, request: rate })
    const counts = fc.record({ input: count, cachedInput: count, cacheWrite: count, output: count, request: count })
    fc.assert(
      fc.property(rates, counts, (of, used) => {
        expect(priceOf(used, list(of)).toString()).toBe(onPaper(used, of))
      }),
      { numRuns: 1_000 },
    )
  })

  test('the prices of many answers add up to the sum on paper without drift', () => {
    const rates = { input: pico(150_000n), output: pico(600_001n), cachedInput: pico(75_499n) }
    let total = 0n
    let paper = '0'
    for (let turn = 0; turn < 5_000; turn++) {
      const used = { input: (turn * 7_919) % 9_973, output: (turn * 104_729) % 4_001, cachedInput: turn % 517 }
      total += priceOf(used, list(rates))
      paper = add(paper, onPaper(used, rates))
    }
    expect(total.toString()).toBe(paper)
  })

  test.each([
    [499n, 0n],
    [500n, 1n],
    [501n, 1n],
  ])('%d pico-dollars are rounded to %d nano-dollars', (of, rounded) => {
    expect(priceOf({ input: 1 }, list({ input: pico(of) }))).toBe(nano(rounded))
  })

  test('usage of zero or less costs nothing', () => {
    expect(priceOf({}, list({ input: pico(5_000n) }))).toBe(nano(0n))
    expect(priceOf({ input: 0, output: -5 }, list({ input: pico(5_000n), output: pico(5_000n) }))).toBe(nano(0n))
  })

  test('the price of an absurd usage fits into the ledger a thousand times over', () => {
    const dear = { ...list({ webSearch: pico(10n ** 10n) }), perImage: { default: pico(10n ** 13n) } }
    const absurd = Number.MAX_SAFE_INTEGER
    for (const used of [{ webSearch: absurd }, { images: { count: absurd } }]) {
      expect(priceOf(used, dear) * 1_000n).toBeLessThan(2n ** 63n)
      expect(priceOfParts([used, used], dear) * 1_000n).toBeLessThan(2n ** 63n)
    }
  })

  test('each of several calls has its own tier and request fee, and the sum is rounded once', () => {
    const rates = { input: pico(1_400n), request: pico(10_000n) }
    const tiered = list(rates, [{ aboveInputTokens: 1, rates: { input: pico(5_000n) } }])
    expect(priceOfParts([{ input: 1 }, { input: 1 }], tiered)).toBe(nano(23n))
    expect(priceOfParts([{ input: 1 }, { input: 2 }], tiered)).toBe(nano(31n))
  })

  test('a unit without a rate is priced as the unit it is a kind of', () => {
    const plain = { input: pico(2_000n), output: pico(3_000n) }
    for (const unit of ['cachedInput', 'cacheWrite', 'imageInput', 'audioInput'] as const) {
      expect(priceOfOne(unit, plain)).toBe(nano(2n))
    }
    for (const unit of ['imageOutput', 'audioOutput'] as const) expect(priceOfOne(unit, plain)).toBe(nano(3n))
    expect(priceOfOne('cacheWriteHour', { ...plain, cacheWrite: pico(7_000n) })).toBe(nano(7n))
    expect(priceOfOne('cacheWriteHour', plain)).toBe(nano(2n))
    expect(priceOfOne('webSearch', plain)).toBe(nano(0n))
  })
})

describe('a tier', () => {
  const tiered = list({ input: pico(1_000n), cachedInput: pico(500n), output: pico(4_000n) }, [
    { aboveInputTokens: 100, rates: { input: pico(2_000n), output: pico(6_000n) } },
    { aboveInputTokens: 1_000, rates: { input: pico(3_000n) } },
  ])

  test.each([
    [{ input: 100, output: 1 }, 104n],
    [{ input: 101, output: 1 }, 208n],
    [{ input: 60, cachedInput: 41, output: 1 }, 60n * 2n + 21n + 6n],
    [{ input: 1_001, output: 1 }, 3_003n + 4n],
  ])('all input together decides the tier, which applies to the whole request: %j', (used, cost) => {
    expect(priceOf(used, tiered)).toBe(nano(cost))
  })

  test.each(['cachedInput', 'cacheWrite', 'cacheWriteHour', 'imageInput', 'audioInput'] as const)(
    'tokens of %s count as input for the tier',
    (unit) => {
      const free = list({ input: pico(0n), output: pico(4_000n) }, [
        { aboveInputTokens: 100, rates: { output: pico(6_000n) } },
      ])
      expect(priceOf({ [unit]: 100, output: 1 }, free)).toBe(nano(4n))
      expect(priceOf({ [unit]: 101, output: 1 }, free)).toBe(nano(6n))
    },
  )

  test('a hold uses the rates of a tier as soon as the input can reach it', () => {
    expect(holdFor({ input: 100, output: 10 }, tiered)).toBe(nano(140n))
    expect(holdFor({ input: 101, output: 10 }, tiered)).toBe(nano(262n))
  })
})

describe('a hold', () => {
  test('a hold covers any usage within its bounds', () => {
    // The hold of a video is tested separately.
    const sold = rated.filter((unit) => unit !== 'videoToken')
    const rates = fc.record(each(sold, rate), { requiredKeys: ['input', 'output'] })
    const tiers = fc
      .array(
        fc.record({
          aboveInputTokens: fc.integer({ min: 1, max: 5_000 }),
          rates: fc.record({ input: rate, output: rate }),
        }),
        {
          maxLength: 3,
        },
      )
      .map((of) => of.toSorted((a, b) => a.aboveInputTokens - b.aboveInputTokens))
    const small = fc.integer({ min: 0, max: 2_000 })
    const used = fc.record(each([...sold, 'reasoning'], small))
    fc.assert(
      fc.property(rates, tiers, used, small, (of, at, usage: Usage, spare) => {
        const prices = list(of, at)
        const input = sum(usage, ['input', 'cachedInput', 'cacheWrite', 'cacheWriteHour', 'imageInput', 'audioInput'])
        const output = sum(usage, ['output', 'imageOutput', 'audioOutput'])
        const { webSearch = 0, character = 0 } = usage
        const hold = holdFor({ webSearch, character, input: input + spare, output: output + spare }, prices)
        expect(priceOf({ ...usage, request: 1 }, prices)).toBeLessThanOrEqual(hold)
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    ['input', ['input', 'cachedInput', 'cacheWrite', 'cacheWriteHour', 'imageInput', 'audioInput']],
    ['output', ['output', 'thinkingOutput', 'imageOutput', 'audioOutput']],
  ] as const)('a hold assumes the dearest rate that %s may have', (kind, among) => {
    for (const dearest of among) {
      const rates = { input: pico(1_000n), output: pico(1_000n), [dearest]: pico(9_000n) }
      expect(holdFor({ [kind]: 10 }, list(rates))).toBe(nano(90n))
    }
  })

  test('a hold uses the dearer lower tier where a higher tier costs less', () => {
    const cheaper = list({ input: pico(5_000n) }, [{ aboveInputTokens: 100, rates: { input: pico(1_000n) } }])
    expect(holdFor({ input: 101 }, cheaper)).toBe(nano(505n))
  })

  test('a hold covers images in addition to tokens and the request', () => {
    const prices = { ...list({ input: pico(2_000n), request: pico(1_000n) }), perImage: { default: pico(30_000n) } }
    expect(holdFor({ input: 5, images: { count: 2 } }, prices)).toBe(nano(71n))
  })

  test('the affordable output fits the balance, and two tokens more do not', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 10n ** 12n }),
        fc.integer({ min: 0, max: 10_000 }),
        fc.bigInt({ min: 1_000n, max: 10n ** 9n }),
        (available, input, perToken) => {
          const prices = list({ input: pico(1_000n), output: pico(perToken) })
          const affordable = affordableOutput(nano(available), { input }, prices)
          expect(affordable).toBeGreaterThanOrEqual(0)
          // The output limit of the request does not lower the affordable number.
          expect(affordableOutput(nano(available), { input, output: 1_000 }, prices)).toBe(affordable)
          if (affordable > 0) expect(holdFor({ input, output: affordable }, prices)).toBeLessThanOrEqual(available)
          expect(holdFor({ input, output: affordable + 2 }, prices)).toBeGreaterThan(available)
        },
      ),
    )
  })

  test('the affordable output is that of the dearest tier which the input may reach, and none where output is free', () => {
    const cheaper = list({ output: pico(5_000n) }, [{ aboveInputTokens: 100, rates: { output: pico(1_000n) } }])
    expect(affordableOutput(nano(50n), { input: 101 }, cheaper)).toBe(10)
    expect(affordableOutput(nano(50n), { input: 1 }, list({ input: pico(1_000n) }))).toBe(0)
  })

  test('the affordable output takes tiers, several choices and web searches into account', () => {
    const rates = { input: pico(1_000n), output: pico(10_000n), request: pico(5_000n), webSearch: pico(1_000_000n) }
    const prices = list(rates, [{ aboveInputTokens: 100, rates: { input: pico(2_000n), output: pico(15_000n) } }])
    for (const bound of [{ input: 100 }, { input: 101 }, { input: 101, request: 3, webSearch: 2 }]) {
      const affordable = affordableOutput(nano(50_000n), bound, prices)
      expect(holdFor({ ...bound, output: affordable }, prices)).toBeLessThanOrEqual(50_000n)
      expect(holdFor({ ...bound, output: affordable + 1 }, prices)).toBeGreaterThan(50_000n)
    }
  })
})

describe('an image', () => {
  const bySize = { ...list({}), perImage: { '1024x1024': pico(2_000n), '1024x1024/high': pico(9_000n) } }

  test.each([
    [{ size: '1024x1024', quality: 'high' }, 27n],
    [{ size: '1024x1024', quality: 'low' }, 6n],
    [{ size: '1024x1024' }, 6n],
  ])('an image costs by size and quality where these have a price, otherwise by size: %j', (image, cost) => {
    expect(priceOf({ images: { count: 3, ...image } }, bySize)).toBe(nano(cost))
    expect(holdFor({ images: { count: 3, ...image } }, bySize)).toBe(nano(cost))
    expect(sellsImage(image, bySize)).toBe(true)
  })

  test('an image size without a price is not sold, and pricing it throws', () => {
    const odd = { size: '512x512', quality: 'high' }
    expect(sellsImage(odd, bySize)).toBe(false)
    expect(() => priceOf({ images: { count: 1, ...odd } }, bySize)).toThrow('has no price')
    expect(() => holdFor({ images: { count: 1, ...odd } }, bySize)).toThrow('has no price')
    expect(priceOf({ images: { count: 1, ...odd } }, { ...bySize, perImage: { default: pico(4_000n) } })).toBe(nano(4n))
  })
})

describe('a video', () => {
  const second = {
    '720p': pico(1_000n),
    '1080p/sound': pico(5_000n),
    '1080p/silent': pico(4_000n),
    default: pico(9_000n),
  }
  const bySecond = { ...list({}), perSecond: second }
  const byToken = {
    ...list({}),
    perVideoToken: {
      '720p': pico(1_000n),
      '720p/input': pico(400n),
      'default/sound': pico(8_000n),
      'default/silent': pico(7_000n),
      default: pico(6_000n),
    },
  }

  test.each([
    [{ seconds: 5, resolution: '720p', sound: true }, 5n],
    [{ seconds: 5, resolution: '1080p', sound: true }, 25n],
    [{ seconds: 5, resolution: '1080p' }, 20n],
    [{ seconds: 5, resolution: '4k' }, 45n],
    [{ seconds: 10.24, resolution: '720p' }, 10n],
    [{ seconds: 10.5, resolution: '720p' }, 11n],
    [{ seconds: 1_000.25, resolution: '4k' }, 9_002n],
    // Input videos change the price of a token, not that of a second.
    [{ seconds: 5, resolution: '720p', hasInputVideo: true }, 5n],
  ])('a video priced per second costs by resolution and audio: %j', (video, cost) => {
    expect(priceOf({ video }, bySecond)).toBe(nano(cost))
    // A vendor may count tokens although the list has no price for them.
    expect(priceOf({ video, videoToken: 1_000 }, bySecond)).toBe(nano(cost))
    expect(holdFor({ video, videoToken: 1_000 }, bySecond)).toBe(nano(cost))
  })

  test.each([
    [{ seconds: 5, resolution: '720p', sound: true }, 10n],
    [{ seconds: 5, resolution: '720p', hasInputVideo: true }, 4n],
    [{ seconds: 5, resolution: '720p', hasInputVideo: false }, 10n],
    [{ seconds: 5, resolution: '1080p', sound: true }, 80n],
    [{ seconds: 5, resolution: '1080p' }, 70n],
    [{ seconds: 5, resolution: '1080p', hasInputVideo: true }, 70n],
  ])('a video priced per token costs by resolution, audio and input video, not by seconds: %j', (video, cost) => {
    expect(priceOf({ video, videoToken: 10 }, byToken)).toBe(nano(cost))
    expect(holdFor({ video, videoToken: 10 }, byToken)).toBe(nano(cost))
  })

  test('one price for all videos, per token or as a whole, is enough', () => {
    const video = { seconds: 6, resolution: '768p' }
    const perToken = { ...list({}), perVideoToken: { default: pico(3_000n) } }
    expect(priceOf({ video, videoToken: 10 }, perToken)).toBe(nano(30n))
    expect(priceOf({ video }, { ...list({}), perVideo: { '768p/6s': pico(28_000n) } })).toBe(nano(28n))
  })

  test('a video priced as a whole has the price of its length, and no other length is sold', () => {
    const byVideo = { ...list({}), perVideo: { '768p/6s': pico(28_000n), '768p/10s': pico(56_000n) } }
    for (const [seconds, cost] of [
      [6, 28n],
      [10, 56n],
    ] as const) {
      const video = { seconds, resolution: '768p', sound: false }
      expect(priceOf({ video }, byVideo)).toBe(nano(cost))
      expect(holdFor({ video }, byVideo)).toBe(nano(cost))
      expect(sellsVideo(video, byVideo)).toBe(true)
    }
    expect(sellsVideo({ seconds: 12, resolution: '768p' }, byVideo)).toBe(false)
    expect(sellsVideo({ seconds: 12, resolution: '768p' }, bySecond)).toBe(true)
    expect(() => priceOf({ video: { seconds: 12, resolution: '768p' } }, byVideo)).toThrow('no price')
    expect(() => priceOf({ video: { seconds: 6, resolution: '1080p' } }, byVideo)).toThrow('no price')
  })

  test('a video without tokens costs nothing, and a video without any price throws', () => {
    expect(priceOf({ video: { seconds: 5, resolution: '720p' }, videoToken: 0 }, byToken)).toBe(nano(0n))
    expect(priceOf({ video: { seconds: 5, resolution: '720p' }, videoToken: -10 }, byToken)).toBe(nano(0n))
    expect(priceOf({ videoToken: 10 }, byToken)).toBe(nano(70n))
    expect(priceOf({ videoToken: 10 }, bySecond)).toBe(nano(0n))
    expect(() => priceOf({ video: { seconds: 5, resolution: '720p' } }, list({}))).toThrow('has no price')
  })
})

test('each unit used in these tests is billed at its own rate', () => {
  for (const unit of billed) expect(priceOf({ [unit]: 1 }, list({ [unit]: pico(1_000n) }))).toBe(nano(1n))
})
