import { expect, test } from 'bun:test'
import { nano } from '../base/money.ts'
import { readCap, readLimits, readMetadata, showCap, showLimits } from './options.ts'

test('a cap is read as dollars for a period', () => {
  expect(readCap('25/month')).toEqual({ amount: nano(25_000_000_000n), period: 'month' })
  expect(readCap('0.5')).toEqual({ amount: nano(500_000_000n), period: 'total' })
  expect(readCap('0/month')).toEqual({ amount: nano(0n), period: 'month' })
  expect(readCap('none')).toBeNull()
})

test.each(['', 'x', '5/year', '-1/day', '1e3/day', '1000000.01/day', '5/month/day'])('%j is not a cap', (text) => {
  expect(() => readCap(text)).toThrow('--cap takes dollars')
})

test('limits that are not given stay as they were', () => {
  const before = { requestsPerMinute: 10, concurrent: 2 }
  expect(readLimits({}, before)).toBeUndefined()
  expect(readLimits({ concurrent: 'none', tokensPerMinute: '500' }, before)).toEqual({
    requestsPerMinute: 10,
    tokensPerMinute: 500,
  })
  expect(readLimits({ concurrent: 'none', requestsPerMinute: 'none' }, before)).toBeNull()
})

test.each(['0', '-1', '1.5', 'many', '1000000001'])('%j is not a limit', (text) => {
  expect(() => readLimits({ concurrent: text })).toThrow(`"${text}" is not a limit: write a whole number from 1 to`)
})

test('metadata is read as names with their values', () => {
  expect(readMetadata('team=blue, env=a=b')).toEqual({ team: 'blue', env: 'a=b' })
  expect(readMetadata('none')).toEqual({})
})

test.each(['', 'team', '=blue', 'team=blue,', Array.from({ length: 17 }, (_, at) => `n${at}=x`).join(',')])(
  '%j is not metadata',
  (text) => {
    expect(() => readMetadata(text)).toThrow('--metadata takes')
  },
)

test('caps and limits are shown as short texts', () => {
  expect(showCap(null)).toBe('-')
  expect(showCap(readCap('2.50/month'))).toBe('$2.5/month')
  expect(showLimits(null)).toBe('-')
  expect(showLimits({ requestsPerMinute: 60, concurrent: 4 })).toBe('60 requests/min, 4 at once')
  expect(showLimits({ requestsPerMinute: 1, tokensPerMinute: 1 })).toBe('1 request/min, 1 token/min')
})
