import { expect, test } from 'bun:test'
import { buildCatalogue, loadFamilies } from '../../src/catalogue/load.ts'
import { startTestGateway } from '../support/gateway.ts'
import { operatorOf } from '../support/operator.ts'

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
