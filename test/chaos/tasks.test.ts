import { describe, expect, test } from 'bun:test'
import { until } from '../support/gateway.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { videoSettings, runTasks, unfindable } from './tasks.ts'
import { makeWorld, pause } from './world.ts'

// The short form of `npm run chaos -- --tasks`: every point once, no video bought twice, lost or charged wrongly
// (T-04).
describe('gateways that are killed while videos are made', () => {
  test('no video is bought twice or orphaned on SQLite with one node', async () => {
    const outcome = await runTasks({ engine: 'sqlite', nodes: 1, rounds: 1, seed: 3 })
    expect(outcome.wrong).toEqual([])
    expect(outcome).toMatchObject({ kills: 5, duplicates: 0, orphans: 0 })
    expect(outcome.vendorTasks).toBeGreaterThan(5)
  }, 600_000)

  test('no video is bought twice or orphaned on PostgreSQL with two nodes', async () => {
    const databaseUrl = await (await sharedPostgres()).freshDatabase()
    const outcome = await runTasks({ engine: 'postgres', nodes: 2, databaseUrl, rounds: 1, seed: 4 })
    expect(outcome.wrong).toEqual([])
    expect(outcome).toMatchObject({ kills: 5, duplicates: 0, orphans: 0 })
  }, 600_000)

  test('a task that the vendor cannot find stays in doubt and listed, and is not bought again', async () => {
    const world = await makeWorld({ engine: 'sqlite', nodes: 1, settings: videoSettings })
    try {
      const [node] = world.nodes
      if (node === undefined) throw new Error('a world without a node')
      const { key } = await world.fund('films', '10')
      await node.start('task-sent')
      const body = { model: unfindable, duration: 5, resolution: '720p', input: { prompt: 'A fox.' } }
      const sent = fetch(`${node.url}/v1/videos/generations`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }).then(
        ({ status }) => status,
        () => 'nothing',
      )
      expect(await node.ended()).toBe('SIGKILL')
      expect(await sent).toBe('nothing')
      await node.start()
      const doubtful = () => world.json<{ data: { state: string; sends: number }[] }>(['tasks', 'list', '--in-doubt'])
      const store = await world.openStore()
      await until(
        async () => (await store.db.selectFrom('task').where('in_doubt', '=', true).select('id').execute()).length > 0,
      )
      await store.close()
      // Longer than it would take to find that the task is absent.
      await pause(3_000)
      expect((await doubtful()).data).toMatchObject([{ state: 'creating', sends: 1 }])
      const { data: bill } = (await (await fetch(world.billUrl)).json()) as { data: unknown[] }
      expect(bill).toHaveLength(1)
      const { code, out } = await world.command(['reconcile', '--bill', world.billUrl])
      expect([code, out.includes('its video task is not over')]).toEqual([2, true])
    } finally {
      await world.close()
    }
  }, 600_000)
})
