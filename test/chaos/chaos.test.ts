import { describe, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { run, type Campaign } from './campaign.ts'

async function survive(campaign: Omit<Campaign, 'clients' | 'seed'>): Promise<void> {
  const summary = await run({ ...campaign, clients: 12, seed: 7 })
  expect(summary.wrong).toEqual([])
  expect(summary).toMatchObject({ difference: nano(0n), duplicates: 0, holdsLeft: 0, kills: campaign.kills })
  expect(summary.vendorCalls).toBeGreaterThan(20)
  expect(summary.clientsSawEnd).toBeGreaterThan(10)
}

// The short form of `npm run chaos`: some of the crash points, on both engines, without losing a nano.
describe('gateways that are killed under load', () => {
  test('the books stay exact on SQLite with one node', () => survive({ engine: 'sqlite', nodes: 1, kills: 4 }), 600_000)

  test('the books stay exact on PostgreSQL with three nodes', async () => {
    const databaseUrl = await (await sharedPostgres()).freshDatabase()
    await survive({ engine: 'postgres', nodes: 3, databaseUrl, kills: 6 })
  }, 600_000)
})
