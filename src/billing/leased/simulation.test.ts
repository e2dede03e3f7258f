import { describe, expect, test } from 'bun:test'
import { simulate } from '../../../test/simulation/program.ts'

// The same seeds in every run, so that a change that breaks one shows at once; and new ones, so that more is covered.
const knownSeeds = 1_500
const newSeeds = 1_500
const timeoutMs = 600_000

/** `SIMULATION_SEED=123 npm test …` runs that one seed; `npm run simulate -- --seed 123` also prints what happens. */
const askedFor = process.env['SIMULATION_SEED']

describe('every customer is charged correctly through random kills, outages and full disks', () => {
  const first = askedFor === undefined ? 1 : Number(askedFor)
  const random = Math.floor(Math.random() * 2 ** 31)
  test(
    askedFor === undefined ? `seeds 1 to ${knownSeeds}` : `seed ${askedFor}`,
    () => expect(failuresFrom(first, askedFor === undefined ? knownSeeds : 1)).toEqual([]),
    timeoutMs,
  )
  test.skipIf(askedFor !== undefined)(
    `${newSeeds} seeds from ${random} on`,
    () => expect(failuresFrom(random, newSeeds)).toEqual([]),
    timeoutMs,
  )
})

test('a seed gives the same run every time', () => {
  for (const seed of [7, 77, 777]) expect(simulate(seed)).toEqual(simulate(seed))
})

function failuresFrom(first: number, count: number): string[] {
  for (let seed = first; seed < first + count; seed++) {
    const { failures, story } = simulate(seed)
    if (failures.length > 0) return [`seed ${seed}`, ...failures, ...story]
  }
  return []
}
