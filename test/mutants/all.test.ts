import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mutants, placesOf } from './all.ts'

const transpiler = new Bun.Transpiler({ loader: 'ts' })
const root = join(import.meta.dir, '../..')

// To run them takes minutes; that a change of the code has left one behind is seen at once.
test.each(mutants)('still stands where it stood: $name', (mutant) => {
  const original = readFileSync(join(root, mutant.file), 'utf8')
  expect(placesOf(mutant, original)).toBe(1)
  // One that is no program any more turns every test red, and says nothing about any.
  expect(() => transpiler.transformSync(original.split(mutant.from).join(mutant.to))).not.toThrow()
  expect(mutant.tests.filter((file) => !existsSync(join(root, file)))).toEqual([])
})
