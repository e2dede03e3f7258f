import { expect, test } from 'bun:test'
import { leastMs } from '../../test/support/least-ms.ts'
import { applyOverrides, readFamilies } from './overrides.ts'
import type { OperatorModel } from './schema.ts'

/**
 * A model, another name for it, a copy under that name, and a change to a name: all that is looked for among aliases.
 */
function four(number: number): OperatorModel[] {
  const [made, named, other] = [`made-${number}`, `named-${number}`, `other-${number}`]
  return [
    { id: made, capability: 'chat', vendor: 'openai', aliases: [named, other] },
    { id: `copied-${number}`, from: named },
    { id: other, contextTokens: 1_000 },
    { id: `second-${number}`, from: other },
  ]
}

test('thousands of models are read in time that grows with their number', () => {
  const overrides = Array.from({ length: 1_000 }, (_, number) => four(number)).flat()
  const read = () => {
    const entries = readFamilies([], Date.now())
    applyOverrides(entries, overrides)
    expect(entries.size).toBe(4_000)
    expect(entries.get('made-999')?.aliases.map(({ id }) => id)).toEqual(['named-999'])
    expect(entries.get('second-999')?.facts).toEqual({ contextTokens: 1_000 })
  }
  expect(leastMs(read, 500)).toBeLessThan(500)
})
