import { beforeAll, expect, test } from 'bun:test'
import { sql } from 'kysely'
import { accountId, fundedAccount, holdOf } from '../../test/support/ledger.ts'
import { coldStartMs, sharedPostgres } from '../../test/support/postgres.ts'
import { takeOf, turnOf } from '../../test/support/turns.ts'
import { nano } from '../base/money.ts'
import { credit } from './accounts.ts'
import { checkLedger } from './check.ts'
import { takeHold, takeHoldIn, type NewHold } from './holds.ts'
import { openStore, type Store } from './open.ts'
import { openNode, takeTurn } from './turns.ts'

beforeAll(async () => {
  await sharedPostgres()
}, coldStartMs)

/** The whole balance is leased by a node that gives it back right after the first statement that asks for money. */
async function openLeased(): Promise<Store> {
  const store = await openStore({ url: await (await sharedPostgres()).freshDatabase() })
  await fundedAccount(store, { amount: 100n })
  const { epoch } = await openNode(store, 'node_b', [])
  await takeTurn(store, { node: 'node_b', epoch }, turnOf(1, { takes: [takeOf(100n)] }))
  await sql`create function give_back() returns trigger language plpgsql as $$
    begin
      if pg_trigger_depth() = 1 then
        update account set held = held - (select sum(amount) from lease);
        update lease set amount = 0;
      end if;
      return null;
    end $$`.execute(store.db)
  await sql`create trigger give_back after update on account
    for each statement execute function give_back()`.execute(store.db)
  return store
}

const ways = {
  'on its own': (store: Store, hold: NewHold) => takeHold(store, hold),
  'with a task': (store: Store, hold: NewHold) => store.transaction((tx) => takeHoldIn(tx, hold, store.now())),
}

test.each(Object.entries(ways))(
  'money that is given back while a hold is refused for it pays for the hold: %s',
  async (_way, take) => {
    const store = await openLeased()
    expect(await take(store, holdOf('a', 100n, { accountId }))).toEqual({ outcome: 'held' })
    expect(await take(store, holdOf('b', 1n))).toMatchObject({ outcome: 'no-funds', available: 0n })
    expect(await checkLedger(store)).toEqual([])
    await store.close()
  },
)

test('money that is given back while a correction down is refused for it is not named as available', async () => {
  const store = await openLeased()
  const down = { accountId, amount: nano(-100n), source: 'cash:manual', actor: 'test' } as const
  expect(await credit(store, down)).toEqual({ outcome: 'below-zero', available: nano(0n) })
  expect(await credit(store, down)).toMatchObject({ outcome: 'credited' })
  expect(await checkLedger(store)).toEqual([])
  await store.close()
})
