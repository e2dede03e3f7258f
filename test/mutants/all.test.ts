import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mutants, placesOf } from './all.ts'

const root = join(import.meta.dir, '../..')

// To run them takes minutes; that a change of the code has left one behind is seen at once.
test.each(mutants)('still stands where it stood: $name', (mutant) => {
  expect(placesOf(mutant, readFileSync(join(root, mutant.file), 'utf8'))).toBe(1)
  expect(mutant.tests.filter((file) => !existsSync(join(root, file)))).toEqual([])
})
