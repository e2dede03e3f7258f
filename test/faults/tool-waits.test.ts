import { expect, test } from 'bun:test'
import { Client } from 'pg'
import { startTestGateway, until } from '../support/gateway.ts'
import { rpc, sendRpc, shown, type Result } from '../support/mcp.ts'
import { sharedPostgres } from '../support/postgres.ts'

test('a tool that waits for its video gets its task despite a short database outage', async () => {
  const databaseUrl = await (await sharedPostgres()).freshDatabase()
  const gateway = await startTestGateway({ databaseUrl, impatient: true })
  const bystander = new Client({ connectionString: databaseUrl })
  await bystander.connect()
  try {
    const video = { model: 'wan2.6-t2v', prompt: 'A fox. sandbox:stuck', wait: true, timeout: 5 }
    const told = sendRpc(gateway, gateway.key, rpc('tools/call', { name: 'generate_video', arguments: video }))
    const onRecord = gateway.store.db.selectFrom('task').select('id').where('upstream_id', 'is not', null)
    await until(async () => (await onRecord.execute()).length === 1)
    const { id } = await onRecord.executeTakeFirstOrThrow()
    await bystander.query('begin')
    await bystander.query('lock table task in access exclusive mode')
    // Longer than a statement may take, so that a look at the task has failed.
    await Bun.sleep(3_000)
    await bystander.query('rollback')
    const { answer } = await told
    expect(shown(answer['result'] as Result)).toMatchObject({ id })
  } finally {
    await bystander.end()
    await gateway.close()
  }
})
