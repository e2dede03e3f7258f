import { describe, expect, test } from 'bun:test'
import { readExpiry } from './expiry.ts'

const now = Date.parse('2026-11-15T12:00:00Z')

describe('the expiry of a key', () => {
  test.each([
    ['12h', '2026-11-16T00:00:00Z'],
    ['30d', '2026-12-15T12:00:00Z'],
    ['2w', '2026-11-29T12:00:00Z'],
    ['2027-01-31', '2027-01-31T00:00:00Z'],
    ['2027-01-31T18:00:00+02:00', '2027-01-31T16:00:00Z'],
  ])('%s is read as %s', (text, at) => {
    expect(readExpiry(text, now)).toBe(Date.parse(at))
  })

  test.each([
    ['0d', 'in the past'],
    ['2026-11-15', 'in the past'],
    ['2027-02-30', 'is not a time'],
    ['2027-13-01', 'is not a time'],
    ['2027-01-31T18:00', 'is not a time'],
    ['tomorrow', 'is not a time'],
    ['-5d', 'is not a time'],
    ['30m', 'is not a time'],
    ['999999w', 'too far away'],
  ])('%s is refused: %s', (text, says) => {
    expect(() => readExpiry(text, now)).toThrow(says)
  })
})
