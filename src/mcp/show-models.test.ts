import { expect, test } from 'bun:test'
import { buildCatalogue, loadFamilies } from '../catalogue/load.ts'
import { readOverrides } from '../catalogue/schema.ts'
import { showModel } from './show-models.ts'

test('a model whose context is unknown is shown without context_tokens', () => {
  const llama = {
    id: 'my-llama',
    capability: 'chat',
    channels: [{ channel: 'local', upstreamModel: 'llama3.1:8b' }],
    prices: { inputPerMillion: '0', outputPerMillion: '0' },
  }
  const overrides = readOverrides([llama, { ...llama, id: 'my-known-llama', contextTokens: 8_192 }])
  const { models } = buildCatalogue({ families: loadFamilies(), overrides, sandbox: false })
  const shown = (id: string) => {
    const model = models.get(id)
    if (model === undefined) throw new Error(`no ${id}`)
    return showModel(id, model)
  }
  expect(shown('my-llama')).not.toHaveProperty('context_tokens')
  expect(shown('my-llama')).toHaveProperty('output_tokens_max')
  expect(shown('my-known-llama')).toMatchObject({ context_tokens: 8_192 })
})
