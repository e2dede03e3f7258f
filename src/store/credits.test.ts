import { expect, test } from 'bun:test'
import { CompiledQuery, sql } from 'kysely'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, fundedAccount } from '../../test/support/ledger.ts'
import { listCredits } from './credits.ts'
import type { Store } from './open.ts'

const charges = 5_000

/** As strict billing books them: in the account's own chain. */
async function charge(store: Store): Promise<void> {
  const numbers = sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${sql.lit(charges)})`
  await sql`insert into txn (id, kind, basis, created_at, chain, seq, hash)
    ${numbers} select 'txn_' || cast(i as text), 'settle', 'vendor', 1, ${accountId}, 1 + i, '' from n`.execute(
    store.db,
  )
  for (const account of [`cust:${accountId}`, 'revenue:gpt-x']) {
    await sql`insert into entry (txn_id, account, amount)
      ${numbers} select 'txn_' || cast(i as text), ${account}, 1 from n`.execute(store.db)
  }
  await sql`analyze`.execute(store.db)
}

eachEngine('credits of an account', (open) => {
  test('credits are found by their own index, without reading charges', async () => {
    const store = await open({ books: 'unchecked' })
    await fundedAccount(store)
    await charge(store)
    const asked: CompiledQuery[] = []
    const watched = store.db.withPlugin({
      transformQuery({ node, queryId }) {
        asked.push(store.db.getExecutor().compileQuery(node, queryId))
        return node
      },
      transformResult: ({ result }) => Promise.resolve(result),
    })
    expect(await listCredits(watched, { accountId, limit: 2 })).toHaveLength(1)
    const [query] = asked
    if (query === undefined) throw new Error('nothing was asked')
    const explain = store.engine === 'sqlite' ? 'explain query plan' : 'explain'
    const how = CompiledQuery.raw(`${explain} ${query.sql}`, [...query.parameters])
    const { rows } = await store.db.withoutPlugins().executeQuery<Record<string, unknown>>(how)
    const plan = rows.flatMap((row) => Object.values(row)).join('\n')
    expect(plan).toContain('txn_credit')
  })
})
