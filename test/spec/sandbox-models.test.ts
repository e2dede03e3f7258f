import { expect, test } from 'bun:test'
import { capabilities, type Capability, pathsOf } from '../../src/capabilities/capability.ts'
import { buildCatalogue, loadFamilies } from '../../src/catalogue/load.ts'
import type { Model } from '../../src/catalogue/model.ts'
import { startTestGateway } from '../support/gateway.ts'
import { operatorOf } from '../support/operator.ts'
import { attemptsOf } from '../support/records.ts'

test('the sandbox serves every model of the catalogue, including retired ones', async () => {
  const gateway = await startTestGateway()
  try {
    const shown = await operatorOf(gateway).all<{ id: string; sold: boolean }>('/admin/models')
    expect(shown.filter(({ sold }) => !sold)).toEqual([])
    const { models } = buildCatalogue({ families: loadFamilies(), sandbox: true, at: Date.now() })
    expect(shown.map(({ id }) => id).toSorted()).toEqual([...models.keys()].toSorted())
  } finally {
    await gateway.close()
  }
})

/** A plain request of each capability, or the file that makes such requests. */
const plainAsks = {
  chat: 'test/clients/every-model.test.ts',
  embeddings: { input: 'a river' },
  images: { prompt: 'a lighthouse' },
  edits: 'test/spec/edits.test.ts',
  speech: { input: 'Good morning.', voice: 'alloy' },
  video: 'test/spec/video-vendors.test.ts',
} as const satisfies Record<Capability, object | string>

/** The first model of each vendor with this capability that can be asked without files. */
function oneOfEachVendor(capability: Capability): Model[] {
  const { models } = buildCatalogue({ families: loadFamilies(), sandbox: true, at: Date.now() })
  const fit = [...models.values()].filter(
    (model) => model.capabilities.includes(capability) && (model.images?.references.min ?? 0) === 0,
  )
  return [...new Map(fit.toReversed().map((model) => [model.vendor, model])).values()]
}

// A vendor's simulator is mounted in one table and its base address is in another: a vendor missing there fails here.
test('one model of each vendor answers in the sandbox, whatever it does', async () => {
  const gateway = await startTestGateway()
  try {
    for (const capability of capabilities) {
      const ask = plainAsks[capability]
      if (typeof ask === 'string') continue
      const asked = oneOfEachVendor(capability)
      expect(asked).not.toBeEmpty()
      for (const { id, vendor } of asked) {
        const response = await gateway.post(pathsOf[capability], { model: id, ...ask })
        expect({ vendor, id, status: response.status }).toEqual({ vendor, id, status: 200 })
        await response.arrayBuffer()
      }
    }
    await gateway.assertBooks()
  } finally {
    await gateway.close()
  }
})

test("a model is simulated at the vendors' own channels that it names, so that each answers for the other", async () => {
  const channels = '[{ channel: openai }, { channel: azure, upstreamModel: mine }]'
  const gateway = await startTestGateway({ yaml: `models: [{ id: gpt-4o-mini, channels: ${channels} }]` })
  try {
    for (const [failing, other] of [
      ['openai', 'azure'],
      ['azure', 'openai'],
    ] as const) {
      const content = `Hello! sandbox:only=${failing} sandbox:status=500`
      const response = await gateway.post('/v1/chat/completions', {
        model: 'gpt-4o-mini',
        messages: [{ role: 'user', content }],
      })
      expect(response.status).toBe(200)
      expect((await attemptsOf(gateway, response)).at(-1)).toMatchObject({ channel: other, status: 200 })
    }
    await gateway.assertBooks()
  } finally {
    await gateway.close()
  }
})
