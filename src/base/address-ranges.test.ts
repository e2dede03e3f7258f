import { expect, test } from 'bun:test'
import { isAddressRange, makeRanges } from './address-ranges.ts'

test.each(['10.0.0.1', '10.0.0.0/8', '0.0.0.0/1', '10.1.2.3/32', '::1', 'fd00::/8', '2001:db8::/128'])(
  '%s is a valid address range',
  (text) => {
    expect(isAddressRange(text)).toBe(true)
  },
)

test.each([
  '',
  'foo',
  '10',
  '10.0.0/8',
  '10.0.0.0/',
  '10.0.0.0/33',
  '10.0.0.0/0',
  '::/0',
  '::1/129',
  '10.0.0.0/8/8',
  '10.0.0.0/-1',
  '10.0.0.0/1e1',
  'fe80::1%eth0',
])('%p is not a valid address range', (text) => {
  expect(isAddressRange(text)).toBe(false)
})

test.each([
  ['10.255.255.255', true],
  ['11.0.0.0', false],
  ['::ffff:10.1.1.1', true],
  ['192.0.2.7', true],
  ['192.0.2.8', false],
  ['fdff::1', true],
  ['fe00::1', false],
  ['10.1', false],
  ['', false],
] as const)('%p is within the ranges: %p', (address, isWithin) => {
  expect(makeRanges(['10.0.0.0/8', '192.0.2.7', 'fd00::/8'])(address)).toBe(isWithin)
})
