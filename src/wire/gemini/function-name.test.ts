import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { readName, writeName } from './function-name.ts'

test('a name that begins with a digit or a dash gets an underscore before it', () => {
  expect(['21st_magic', '-f', '_1f', 'f1', '_f', 'f-1'].map(writeName)).toEqual([
    '_21st_magic',
    '_-f',
    '__1f',
    'f1',
    '_f',
    'f-1',
  ])
})

test('every name is accepted by the vendor, is read back as it was, and stays distinct from the others', () => {
  const name = fc.stringMatching(/^[\w-]{1,64}$/)
  fc.assert(
    fc.property(name, (given) => {
      expect(writeName(given)).toMatch(/^[A-Za-z_]/)
      expect(readName(writeName(given))).toBe(given)
    }),
  )
})
