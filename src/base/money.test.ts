import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  formatDollars,
  multiply,
  nano,
  parseDecimal,
  parseDollars,
  pico,
  picoPerUnit,
  showDollars,
  toNano,
} from './money.ts'

const amounts = fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n })

describe('amounts as text', () => {
  test.each([
    ['0', 0n],
    ['12', 12_000_000_000n],
    ['0.000000001', 1n],
    ['-3.5', -3_500_000_000n],
    ['0012.50', 12_500_000_000n],
    ['-0', 0n],
    ['999999999999999999', 999_999_999_999_999_999_000_000_000n],
  ])('%s is read as an exact amount', (text, amount) => {
    expect(parseDollars(text)).toBe(nano(amount))
  })

  test.each(['', ' ', '1.', '.5', '1e3', '+1', '1,5', '0x10', '--1', '1.0000000001', '1.2.3', '١', 'NaN', '1 ', '\n1'])(
    '%j is not an amount',
    (text) => {
      expect(parseDollars(text)).toBeUndefined()
    },
  )

  test('a formatted amount is read back unchanged', () => {
    fc.assert(fc.property(amounts, (amount) => expect(parseDollars(formatDollars(nano(amount)))).toBe(nano(amount))))
  })

  test('nothing is formatted without a sign', () => {
    expect(formatDollars(nano(0n))).toBe('0')
    expect(formatDollars(nano(-1n))).toBe('-0.000000001')
  })

  test('a formatted amount has no exponent and no trailing zeros', () => {
    fc.assert(
      fc.property(amounts, (amount) => {
        expect(formatDollars(nano(amount))).toMatch(/^-?\d+(?:\.\d*[1-9])?$/)
      }),
    )
  })

  test('the minus of a shown amount precedes the dollar sign', () => {
    expect([nano(3_500_000_000n), nano(-500_000_000n), '-0.25', '7'].map(showDollars)).toEqual([
      '$3.5',
      '-$0.5',
      '-$0.25',
      '$7',
    ])
  })
})

const price = (text: string) => picoPerUnit(parseDecimal(text) ?? { digits: 0n, scale: 0 }, 1_000_000n)

describe('rounding', () => {
  test.each([
    [0n, 0n],
    [499n, 0n],
    [500n, 1n],
    [1_499n, 1n],
    [1_500n, 2n],
    [2_500n, 3n],
    [-500n, 0n],
    [-501n, -1n],
  ])('%d pico-dollars are %d nano-dollars', (given, rounded) => {
    expect(toNano(pico(given))).toBe(nano(rounded))
  })

  test('rounding is never off by more than half a nano-dollar', () => {
    fc.assert(
      fc.property(amounts, (amount) => {
        const off = toNano(pico(amount)) * 1_000n - amount
        expect(off).toBeLessThanOrEqual(500n)
        expect(off).toBeGreaterThan(-500n)
      }),
    )
  })

  test('a price per million is rounded to pico-dollars per unit', () => {
    expect(price('0.15')).toBe(pico(150_000n))
    expect(price('0.0000005')).toBe(pico(1n))
    expect(price('0.0000004999')).toBe(pico(0n))
    expect(price('1234567.890123456789')).toBe(pico(1_234_567_890_123n))
  })
})

test('decimals are multiplied without loss', () => {
  const decimal = fc.record({ digits: fc.bigInt({ min: 0n, max: 10n ** 18n }), scale: fc.integer({ min: 0, max: 18 }) })
  fc.assert(
    fc.property(decimal, decimal, (a, b) => {
      const product = multiply(a, b)
      const common = 10n ** 36n
      const whole = ({ digits, scale }: typeof a, at: bigint) => (digits * at) / 10n ** BigInt(scale)
      expect(whole(product, common)).toBe((whole(a, 10n ** 18n) * whole(b, 10n ** 18n)) / 1n)
    }),
  )
})
