import { describe, expect, test } from 'bun:test'
import { sql } from 'kysely'
import { nano } from '../base/money.ts'
import { accountId, attemptOf, fundedAccount, holdOf, requestOf, settlementOf } from '../../test/support/ledger.ts'
import { eachEngine } from '../../test/support/engines.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { credit } from './accounts.ts'
import { checkLedger } from './check.ts'
import { isUniqueViolation } from './faults.ts'
import { takeHold } from './holds.ts'
import { settleHold } from './ledger.ts'
import type { Store } from './open.ts'
import { openNode, takeTurn, type Posting } from './turns.ts'

const node = 'node_a'

function postingOf(id: string, charge = 5n): Posting {
  return {
    holdId: id,
    accountId,
    priceVersion: 'v1',
    charge: nano(charge),
    excess: nano(0n),
    basis: 'vendor',
    usage: { input: 1, output: 2 },
    request: requestOf(id),
    attempts: [attemptOf(id, 3n)],
  }
}

async function postTurns(store: Store, ...turns: Posting[][]): Promise<void> {
  const { epoch } = await openNode(store, node, [])
  const take = { accountId, waiting: [nano(100n)], left: nano(0n), extra: nano(0n) }
  await takeTurn(store, { node, epoch }, { number: 1, postings: [], takes: [take], returns: [] })
  let number = 1
  for (const postings of turns) {
    number++
    await takeTurn(store, { node, epoch }, { number, postings, takes: [], returns: [] })
  }
}

eachEngine('chains', (open, _place, engine) => {
  /** Edits the books as an owner of the database would who knows about the triggers. */
  async function tamper(store: Store, edit: string): Promise<void> {
    await store.transaction(async (tx) => {
      if (engine === 'postgres') await sql`set local session_replication_role = replica`.execute(tx)
      else
        for (const table of ['txn', 'entry']) await sql`drop trigger ${sql.ref(`${table}_refuses_update`)}`.execute(tx)
      if (engine === 'sqlite') {
        for (const table of ['txn', 'entry']) await sql`drop trigger ${sql.ref(`${table}_refuses_delete`)}`.execute(tx)
        await sql`pragma defer_foreign_keys = on`.execute(tx)
      }
      for (const statement of edit.split(';')) await sql.raw(statement).execute(tx)
    })
  }

  async function written(books?: 'unchecked'): Promise<Store> {
    const store = await open(books === undefined ? {} : { books })
    await fundedAccount(store)
    await postTurns(store, [postingOf('a'), postingOf('b')], [postingOf('c')])
    await takeHold(store, holdOf('strict', 10n))
    await settleHold(store, settlementOf('strict', 7n))
    await credit(store, { accountId, amount: nano(20n), source: 'promo', actor: 'test' })
    return store
  }

  test('a place in a chain is taken once', async () => {
    const store = await written()
    const copied = sql`insert into txn (id, kind, basis, created_at, chain, seq)
      select 'txn_copy', kind, basis, created_at, chain, seq from txn where chain is not null limit 1`
    expect(isUniqueViolation(await thrownBy(copied.execute(store.db)))).toBe(true)
  })

  test('turns are chained by node, and settlements and credits by account', async () => {
    const store = await written()
    const ends = await store.db.selectFrom('chain').select(['id', 'seq']).orderBy('id').execute()
    expect(ends).toEqual([
      { id: '', seq: 0 },
      { id: accountId, seq: 3 },
      { id: node, seq: 3 },
    ])
    expect(await checkLedger(store)).toEqual([])
  })

  test('a repeated posting is left out and takes no place in the chain', async () => {
    const store = await open()
    await fundedAccount(store)
    await postTurns(store, [postingOf('a')], [postingOf('b'), postingOf('a'), postingOf('c')])
    const places = await store.db
      .selectFrom('txn')
      .select(['id', 'seq'])
      .where('chain', '=', node)
      .orderBy('seq')
      .execute()
    expect(places).toEqual([
      { id: 'a', seq: 1 },
      { id: 'b', seq: 2 },
      { id: 'c', seq: 3 },
    ])
    const { posted } = await store.db.selectFrom('account').select('posted').executeTakeFirstOrThrow()
    expect(posted).toBe(nano(985n))
  })

  describe('an edit of the books', () => {
    test.each([
      ['a changed note', `update txn set note = 'x' where id = 'b'`, 'b', 'not what was written'],
      ['a changed basis', `update txn set basis = 'estimated' where id = 'b'`, 'b', 'not what was written'],
      ['a changed price list', `update txn set price_version = 'x' where id = 'b'`, 'b', 'not what was written'],
      ['a changed time', `update txn set created_at = created_at + 1 where id = 'b'`, 'b', 'not what was written'],
      ['a changed kind', `update txn set kind = 'loss' where id = 'b'`, 'b', 'not what was written'],
      [
        'a changed usage',
        `update txn set usage = '{"input":1,"output":3}' where id = 'a'`,
        'a',
        'not what was written',
      ],
      [
        'amounts that still balance',
        `update entry set amount = amount + 1 where txn_id = 'b' and account like 'rev%';
         update entry set amount = amount - 1 where txn_id = 'b' and account like 'cost%'`,
        'b',
        'not what was written',
      ],
      [
        'two postings that changed places',
        `update txn set seq = 9 where id = 'a'; update txn set seq = 1 where id = 'c'; update txn set seq = 3 where id = 'a'`,
        'c',
        'not what was written',
      ],
      [
        'a removed posting',
        `delete from entry where txn_id = 'b'; delete from txn where id = 'b'`,
        'c',
        'is missing before it',
      ],
      [
        'a removed last posting',
        `delete from entry where txn_id = 'c'; delete from txn where id = 'c'`,
        node,
        'the chain ends at 2, its end was recorded as 3',
      ],
      [
        'an added posting without a chain',
        `insert into txn (id, kind, basis, created_at) values ('x', 'correction', 'manual', 1)`,
        'txn',
        '1 postings stand in no chain',
      ],
      [
        'an added posting with a chain of its own',
        `insert into txn (id, kind, basis, created_at, chain, seq, hash) values ('x', 'credit', 'manual', 1, 'y', 1, 'z')`,
        'y',
        'without an end',
      ],
    ])('the ledger check reports the edit: %s', async (_name, edit, subject, why) => {
      const store = await written('unchecked')
      await tamper(store, edit)
      const found = (await checkLedger(store)).filter(({ rule }) => rule === 'I8')
      expect(found).toEqual([{ rule: 'I8', subject, why: expect.stringContaining(why) }])
    })
  })
})
