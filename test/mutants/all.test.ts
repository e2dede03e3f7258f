import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mutants, placesOf } from './all.ts'

const transpiler = new Bun.Transpiler({ loader: 'ts' })
const root = join(import.meta.dir, '../..')

// Running the mutants takes minutes, but a mutant that no longer matches the code is found at once.
test.each(mutants)('the mutant matches exactly one place in the code: $name', (mutant) => {
  const original = readFileSync(join(root, mutant.file), 'utf8')
  expect(placesOf(mutant, original)).toBe(1)
  // A mutant that does not compile turns every test red and proves nothing.
  expect(() => transpiler.transformSync(original.split(mutant.from).join(mutant.to))).not.toThrow()
  expect(mutant.tests.filter((file) => !existsSync(join(root, file)))).toEqual([])
})
