import { expect, test } from 'bun:test'
import { buildCatalogue, loadFamilies } from './load.ts'
import { readOverrides } from './schema.ts'

const families = loadFamilies()
const build = (models: unknown) =>
  buildCatalogue({ families, overrides: readOverrides(models), sandbox: false, at: Date.now() })
const plain = build([])

test('each fact that the operator gives replaces the one of the list, and the others stay', () => {
  const before = plain.models.get('gpt-4o')
  const numbers = { contextTokens: 64_000, outputTokensMax: 2_000, choicesMax: 3 }
  const given = { ...numbers, reasoning: true, efforts: ['low'], rules: ['binds-thinking'] }
  const { refusesEffort: _, ...kept } = { ...before }
  expect(build([{ id: 'gpt-4o', ...given }]).models.get('gpt-4o')).toEqual({ ...kept, ...given } as never)
  expect(build([{ id: 'gpt-4o', outputTokensMax: 2_000 }]).models.get('gpt-4o')).toEqual({
    ...before,
    outputTokensMax: 2_000,
  } as never)
})

test('a model may be said to be another vendor’s, of another day, and to do something else', () => {
  const changed = { vendor: 'deepseek', created: '2027-01-15', capability: 'embeddings' }
  expect(build([{ id: 'gpt-4o', ...changed }]).models.get('gpt-4o')).toMatchObject({
    vendor: 'deepseek',
    offers: [{ vendor: 'deepseek', upstreamModel: 'gpt-4o' }],
    created: Date.UTC(2027, 0, 15) / 1000,
    capabilities: ['embeddings'],
  })
})

test('a model keeps its vendor under another name there, and a new one has its own id as that name', () => {
  const { models } = build([
    { id: 'gpt-4o', upstreamModel: 'gpt-4o-2024-05-13' },
    { id: 'mine', capability: 'embeddings', vendor: 'openai', prices: { inputPerMillion: '1' } },
  ])
  expect(models.get('gpt-4o')?.offers).toEqual([{ vendor: 'openai', upstreamModel: 'gpt-4o-2024-05-13' }])
  expect(models.get('mine')?.offers).toEqual([{ vendor: 'openai', upstreamModel: 'mine' }])
})

test('limits of two kinds are changed at once, and both keep what is not given', () => {
  const prices = { inputPerMillion: '1', perMillionCharacters: '2' }
  const limits = { embeddings: { batchMax: 3 }, speech: { charactersMax: 300 } }
  const { models } = build([
    { id: 'first', capabilities: ['embeddings', 'speech'], vendor: 'openai', ...limits, prices },
    { id: 'second', from: 'first', embeddings: { inputTokensMax: 50 }, speech: { formats: ['mp3'] } },
  ])
  expect(models.get('second')).toMatchObject({
    embeddings: { batchMax: 3, inputTokensMax: 50 },
    speech: { charactersMax: 300, formats: ['mp3'] },
  })
})

test('a hidden model stays hidden when something else of it is changed, until it is shown again', () => {
  const hidden = { id: 'gpt-*', hidden: true }
  const dearer = { id: 'gpt-4o', prices: { markup: '2' } }
  expect(build([hidden, dearer]).unsold).toContainEqual({ id: 'gpt-4o', why: 'hidden by the operator' })
  const { models } = build([hidden, { ...dearer, hidden: false }])
  expect([...models.keys()].filter((id) => id.startsWith('gpt-'))).toContain('gpt-4o')
  expect(models.has('gpt-4o-mini')).toBe(false)
})

test('a price does not bring back a model that its vendor has retired, but a channel that has it does', () => {
  const priced = { id: 'gpt-image-1', prices: { markup: '2' } }
  expect(build([priced]).unsold).toContainEqual({ id: 'gpt-image-1', why: 'retired by its vendor' })
  const { models } = build([{ ...priced, channels: [{ channel: 'azure' }] }])
  expect(models.get('gpt-image-1')?.offers).toEqual([{ channel: 'azure', upstreamModel: 'gpt-image-1' }])
})

test('an announced end stays with a model, its dated ids and its copies, but not on a channel that has it', () => {
  const { models } = build([
    { id: 'gpt-4o', prices: { markup: '2' } },
    { id: 'mine', from: 'gpt-4o' },
    { id: 'gpt-4.1', channels: [{ channel: 'azure' }] },
  ])
  const end = { date: '2027-01-14', source: expect.any(String) }
  for (const id of ['gpt-4o', 'gpt-4o-2024-08-06', 'mine']) expect([id, models.get(id)?.end]).toEqual([id, end])
  expect(plain.models.get('gpt-4.1')?.end).toEqual(end)
  expect(models.get('gpt-4.1')).not.toHaveProperty('end')
})

test('every model whose announced end has passed is still sold', () => {
  const ending = families.flatMap((family) => family.models).filter(({ end }) => end !== undefined)
  expect(ending.map(({ id }) => id)).toEqual(expect.arrayContaining(['gpt-4o', 'gpt-5.4-nano', 'gemini-2.5-pro']))
  const { models } = buildCatalogue({ families, sandbox: false, at: Date.parse('2040-01-01') })
  for (const { id, end } of ending) expect([id, models.get(id)?.end]).toEqual([id, end])
})
