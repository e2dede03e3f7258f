import { expect, test } from 'bun:test'
import { buildCatalogue } from '../catalogue/load.ts'
import { familySchema } from '../catalogue/schema.ts'
import { readConfigFile } from '../config/file.ts'
import { readEnvironment } from '../config/environment.ts'
import type { Mode } from '../store/schema.ts'
import { remarksOn } from './remarks.ts'

const environment = readEnvironment({ TURNPIKE_SECRET: 's'.repeat(32) })
const file = readConfigFile('turnpike.yaml', 'sandbox: false', {})

/** The remarks at a moment on models with these dates of their ends; null stands for a model that does not end. */
function remarksAt(moment: string, dates: readonly (string | null)[], mode: Mode = 'real') {
  const models = [...dates, null].map((date, index) => ({
    id: `model-${index}`,
    capabilities: ['chat'],
    prices: { inputPerMillion: '1', outputPerMillion: '2' },
    ...(date !== null && { end: { date, source: 'a page' } }),
  }))
  const family = { vendor: 'openai', date: '2026-08-05', source: 'a list', confidence: 'listed', models }
  const at = Date.parse(moment)
  const families = [{ ...familySchema.parse(family), name: 'a-family.yaml' }]
  const { models: sold } = buildCatalogue({ families, sandbox: mode === 'sandbox', at })
  return remarksOn({ environment, file, variables: {}, mode, models: sold, clock: { now: () => at } }).lines
}

const where = 'npx turnpike models says which, under ENDS (docs/operators.md).'

test('models whose announced end is less than 60 days away are counted, with the first and the last date', () => {
  const dates = ['2027-04-01', '2026-12-01', '2027-01-14', '2026-12-11']
  const said = `3 of these models end at their vendors between 2026-12-01 and 2027-01-14: ${where}`
  expect(remarksAt('2026-11-18', dates)).toContain(said)
  expect(remarksAt('2027-01-31T00:00:00Z', dates)).toContain(said)
  const all = `4 of these models end at their vendors between 2026-12-01 and 2027-04-01: ${where}`
  expect(remarksAt('2027-01-31T00:00:01Z', dates)).toContain(all)
})

test('a single one is said as such, also once its date has passed while it is still on sale', () => {
  const said = `1 of these models ends at its vendor on 2026-12-01: ${where}`
  expect(remarksAt('2026-11-18', ['2026-12-01'])).toContain(said)
  expect(remarksAt('2030-01-01', ['2026-12-01'])).toContain(said)
  const both = `2 of these models end at their vendors on 2026-12-01: ${where}`
  expect(remarksAt('2026-11-18', ['2026-12-01', '2026-12-01'])).toContain(both)
})

test('nothing is said of ends that are far away or not announced, or in sandbox mode', () => {
  const at = '2026-11-18'
  const lines = [remarksAt(at, []), remarksAt(at, ['2027-04-01']), remarksAt(at, ['2026-12-01'], 'sandbox')].flat()
  expect(lines.filter((line) => line.includes('ENDS'))).toEqual([])
})
