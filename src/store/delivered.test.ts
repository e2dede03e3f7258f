import { expect, test } from 'bun:test'
import { type QueryExecutorProvider, sql } from 'kysely'
import { eachEngine } from '../../test/support/engines.ts'
import { attemptOf, fundedAccount, holdOf, settlementOf } from '../../test/support/ledger.ts'
import { olderDatabase } from '../../test/support/older-database.ts'
import { takeHold } from './holds.ts'
import { settleHold } from './ledger.ts'
import type { Store } from './open.ts'
import { attemptsByIds } from './reconcile.ts'

async function settled(store: Store): Promise<Store> {
  await fundedAccount(store)
  await takeHold(store, holdOf('a', 100n))
  const attempts = [attemptOf('failed', 0n, { delivered: false }), attemptOf('paid', 10n)]
  await settleHold(store, settlementOf('a', 20n, { attempts }))
  return store
}

eachEngine('attempts of an older version without the delivered column', (open, place, engine) => {
  /** Where each row is stored, and which transaction wrote it last: both change when a row is rewritten. */
  async function rowVersions(db: QueryExecutorProvider): Promise<unknown> {
    if (engine === 'sqlite') return undefined
    return (await sql`select id, ctid::text, xmin::text from attempt order by id`.execute(db)).rows
  }

  // F-10
  test('older attempts are not rewritten by the migration, and the older version can go on writing', async () => {
    const at = await place('empty')
    const before = await olderDatabase(at, '0006-delivered')
    const write = (id: string, cost: number) =>
      sql`insert into attempt (id, request_id, channel, vendor, upstream_model, status, vendor_cost, created_at)
        values (${id}, 'req_a', 'openai-main', 'openai', 'gpt-x', 200, ${cost}, 1)`.execute(before)
    await write('att_failed', 0)
    await write('att_paid', 10)
    const written = await rowVersions(before)

    // The attempts alone are there, and not what was posted for them.
    const now = await open({ at, books: 'unchecked' })
    expect(await rowVersions(now.db)).toEqual(written)
    await write('att_later', 0)
    await before.destroy()
    const rows = await now.db.selectFrom('attempt').select(['id', 'delivered']).orderBy('id').execute()
    expect(rows.map(({ id, delivered }) => [id, delivered])).toEqual([
      ['att_failed', null],
      ['att_later', null],
      ['att_paid', null],
    ])
    const read = await attemptsByIds(now.db, ['att_failed', 'att_later', 'att_paid'])
    expect(read.filter(({ delivered }) => delivered).map(({ id }) => id)).toEqual(['att_paid'])
  })

  test('a database whose delivered column is not nullable works as well', async () => {
    const at = await place()
    const before = await open({ at })
    await sql`alter table attempt drop column delivered`.execute(before.db)
    await sql`alter table attempt add column delivered boolean not null default false`.execute(before.db)
    const now = await settled(await open({ at }))
    const read = await attemptsByIds(now.db, ['att_failed', 'att_paid'])
    expect(read.map(({ id, delivered }) => `${id} ${delivered}`).toSorted()).toEqual([
      'att_failed false',
      'att_paid true',
    ])
  })
})
