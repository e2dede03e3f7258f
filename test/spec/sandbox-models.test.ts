import { expect, test } from 'bun:test'
import { buildCatalogue, loadFamilies } from '../../src/catalogue/load.ts'
import { startTestGateway } from '../support/gateway.ts'
import { operatorOf } from '../support/operator.ts'
import { attemptsOf } from '../support/records.ts'

test('the sandbox serves every model of the catalogue, including retired ones', async () => {
  const gateway = await startTestGateway()
  try {
    const shown = await operatorOf(gateway).all<{ id: string; sold: boolean }>('/admin/models')
    expect(shown.filter(({ sold }) => !sold)).toEqual([])
    const { models } = buildCatalogue({ families: loadFamilies(), sandbox: true })
    expect(shown.map(({ id }) => id).toSorted()).toEqual([...models.keys()].toSorted())
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
