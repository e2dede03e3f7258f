import { expect, test } from 'bun:test'
import { type KyselyPlugin, sql } from 'kysely'
import { eachEngine } from '../../test/support/engines.ts'
import { until } from '../../test/support/gateway.ts'
import { accountId, fundedAccount } from '../../test/support/ledger.ts'
import { plansOf } from '../../test/support/plans.ts'
import { returnOf, standingOf, takeOf, turnOf } from '../../test/support/turns.ts'
import { nano } from '../base/money.ts'
import type { Store } from './open.ts'
import { openNode, takeTurn } from './turns.ts'

/** A store that counts the statements of its transactions. */
function counted(store: Store): { readonly store: Store; statements: number } {
  const counter = {
    statements: 0,
    store: {
      ...store,
      transaction: <T>(work: Parameters<typeof store.transaction<T>>[0]) =>
        store.transaction<T>((tx) => work(tx.withPlugin(counting))),
    },
  }
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: ({ result }) => {
      counter.statements++
      return Promise.resolve(result)
    },
  }
  return counter
}

eachEngine('the accounts of a turn', (open, place, engine) => {
  test('many accounts take as many statements as one', async () => {
    const tapped = counted(await open())
    const { store } = tapped
    const { epoch } = await openNode(store, 'node_a', [])
    const identity = { node: 'node_a', epoch }
    const statements: number[] = []
    let number = 0
    for (const count of [1, 5]) {
      const ids = Array.from({ length: count }, (_, at) => `acc_${count}_${at}`)
      for (const id of ids) await fundedAccount(store, { id })
      const before = tapped.statements
      await takeTurn(store, identity, turnOf(++number, { takes: ids.map((id) => takeOf(100n, 10n, id)) }))
      const returns = ids.map((id) => returnOf(40n, id))
      const takes = ids.map((id) => takeOf(5n, 0n, id))
      await takeTurn(store, identity, turnOf(++number, { returns, takes }))
      statements.push(tapped.statements - before)
    }
    expect(statements[1]).toBe(statements[0])
    const { accounts, leases } = await standingOf(store)
    expect(accounts.map(({ posted, held }) => [posted, held])).toEqual(accounts.map(() => [nano(1_000n), nano(75n)]))
    expect(leases.map(({ amount }) => amount)).toEqual(accounts.map(() => nano(75n)))
  })

  test.if(engine === 'sqlite')('each account and lease is looked up by its key', async () => {
    const at = await place()
    const store = await open({ at })
    await fundedAccount(store)
    const { epoch } = await openNode(store, 'node_a', [])
    const identity = { node: 'node_a', epoch }
    const parts = { takes: [takeOf(100n)], returns: [returnOf(50n)] }
    const plans = await plansOf('file' in at ? at.file : '', store, async (watched) => {
      await takeTurn(watched, identity, turnOf(1, { takes: [takeOf(100n)] }))
      await takeTurn(watched, identity, turnOf(2, parts))
    })
    const searches = plans.flatMap((plan) => plan.match(/^(?:SCAN|SEARCH) (?:account|lease)\b.*$/gm) ?? [])
    const byKey = /^SEARCH (?:account|lease) USING INDEX \w+ \((?:id=\?|node=\? AND account_id=\?)\)$/
    expect(searches.filter((search) => !byKey.test(search))).toEqual([])
    expect(searches).not.toBeEmpty()
  })

  test('a lease that was given back whole is not read again at a start', async () => {
    const store = await open()
    await fundedAccount(store)
    const { epoch } = await openNode(store, 'node_a', [])
    await takeTurn(store, { node: 'node_a', epoch }, turnOf(1, { takes: [takeOf(100n)] }))
    expect((await openNode(store, 'node_a', [])).leases).toEqual(new Map([[accountId, nano(100n)]]))
    await takeTurn(store, { node: 'node_a', epoch: epoch + 1 }, turnOf(2, { returns: [returnOf(100n)] }))
    expect((await openNode(store, 'node_a', [])).leases).toEqual(new Map())
  })

  test.skipIf(engine === 'sqlite')('accounts are locked in order of id, whatever order they are named in', async () => {
    const store = await open()
    for (const id of ['acc_a', 'acc_b']) await fundedAccount(store, { id })
    const { epoch } = await openNode(store, 'node_a', [])
    const { turn: waited } = await store.transaction(async (first) => {
      await lock(first, 'acc_a')
      const takes = [takeOf(1n, 0n, 'acc_b'), takeOf(1n, 0n, 'acc_a')]
      const turn = takeTurn(store, { node: 'node_a', epoch }, turnOf(1, { takes }))
      await until(async () => (await waiting(store)) === 1)
      await store.transaction((second) => lock(second, 'acc_b'))
      return { turn }
    })
    expect((await waited).size).toBe(2)
  })

  test.skipIf(engine === 'sqlite')(
    'a turn does not wait for what only refers to its account, such as a key that is being made',
    async () => {
      const store = await open()
      await fundedAccount(store)
      const { epoch } = await openNode(store, 'node_a', [])
      const turn = turnOf(1, { takes: [takeOf(100n)] })
      await store.transaction(async (other) => {
        await other.selectFrom('account').select('id').where('id', '=', accountId).forKeyShare().execute()
        expect((await takeTurn(store, { node: 'node_a', epoch }, turn)).get(accountId)?.kind).toBe('granted')
      })
    },
  )
})

async function lock(tx: Store['db'], id: string): Promise<void> {
  await tx.selectFrom('account').select('id').where('id', '=', id).forUpdate().noWait().execute()
}

/** How many sessions wait for another's row. */
async function waiting(store: Store): Promise<number> {
  const sessions = sql<{ rows: bigint }>`select count(*) as rows from pg_stat_activity
    where datname = current_database() and wait_event = 'transactionid'`
  return Number((await sessions.execute(store.db)).rows[0]?.rows)
}
