import { expect, test } from 'bun:test'
import { z } from 'zod'
import { capabilities } from '../capabilities/capability.ts'
import { buildCatalogue, loadFamilies } from '../catalogue/load.ts'
import { readOverrides } from '../catalogue/schema.ts'
import { limitsOf, modelPage, showModel } from './show-models.ts'
import { tools } from './tools/index.ts'

test('a model whose context is unknown is shown without context_tokens', () => {
  const llama = {
    id: 'my-llama',
    capability: 'chat',
    channels: [{ channel: 'local', upstreamModel: 'llama3.1:8b' }],
    prices: { inputPerMillion: '0', outputPerMillion: '0' },
  }
  const overrides = readOverrides([llama, { ...llama, id: 'my-known-llama', contextTokens: 8_192 }])
  const { models } = buildCatalogue({ families: loadFamilies(), overrides, sandbox: false, at: Date.now() })
  const shown = (id: string) => {
    const model = models.get(id)
    if (model === undefined) throw new Error(`no ${id}`)
    return showModel(id, model)
  }
  expect(shown('my-llama')).not.toHaveProperty('context_tokens')
  expect(shown('my-llama')).toHaveProperty('output_tokens_max')
  expect(shown('my-known-llama')).toMatchObject({ context_tokens: 8_192 })
})

test.each([
  ['gpt-image-1', 'images', 'generate_image'],
  ['text-embedding-v4', 'embeddings', 'create_embeddings'],
  ['tts-1', 'speech', 'speak'],
  ['wan2.6-t2v', 'video', 'generate_video'],
] as const)(
  'what %s takes is shown under the name of its capability, with the tool to call',
  (id, capability, tool) => {
    const { models } = buildCatalogue({ families: loadFamilies(), overrides: [], sandbox: true, at: Date.now() })
    const model = models.get(id)
    if (model === undefined) throw new Error(`no ${id}`)
    expect(limitsOf(model)).toEqual({ [capability]: model[capability] })
    const page = modelPage(id, model)
    expect(page).toStartWith(`# ${id}\n\nDoes ${capability}`)
    expect(page).toContain(`"${capability}": {`)
    expect(page).toContain(`## To call it: \`${tool}\``)
  },
)

test.each(capabilities)('the call that the page of a model for %s shows is one that its tool takes', (capability) => {
  const { models } = buildCatalogue({ families: loadFamilies(), overrides: [], sandbox: true, at: Date.now() })
  const [id, model] = [...models].find(([, each]) => each.capabilities.includes(capability)) ?? []
  if (id === undefined || model === undefined) throw new Error(`no model for ${capability}`)
  const shown = [...modelPage(id, model).matchAll(/## To call it: `(\w+)`\n+```json\n(.*?)\n```/gs)]
  expect(shown).toHaveLength(model.capabilities.length)
  for (const [, name, call = ''] of shown) {
    const called = tools.find((tool) => tool.name === name)
    expect({ name, taken: called?.input.safeParse(JSON.parse(call)).success }).toEqual({ name, taken: true })
  }
})

test('every model that a tool has as its example is still sold', () => {
  const { models } = buildCatalogue({ families: loadFamilies(), overrides: [], sandbox: false, at: Date.now() })
  const examples = tools.flatMap(({ name, input }) => {
    const { model } = z.toJSONSchema(input, { io: 'input' }).properties ?? {}
    const given = typeof model === 'object' ? (model.examples ?? []) : []
    return given.map((id) => ({ name, id, isSold: models.has(String(id)) }))
  })
  expect(examples.length).toBeGreaterThan(5)
  expect(examples.filter(({ isSold }) => !isSold)).toEqual([])
})

test('a chat model has a page without limits of other capabilities', () => {
  const { models } = buildCatalogue({ families: loadFamilies(), overrides: [], sandbox: true, at: Date.now() })
  const model = models.get('gpt-4o-mini')
  if (model === undefined) throw new Error('no gpt-4o-mini')
  expect(limitsOf(model)).toEqual({})
  expect(modelPage('gpt-4o-mini', model)).not.toContain('What it takes')
})
