import type { Selectable } from 'kysely'
import { type EntryRow, hashOf } from './chain.ts'
import type { Breach } from './check.ts'
import { json } from './rows.ts'
import type { Tx, TxnTable } from './schema.ts'

// Bounds the memory of the walk, not its work.
const pageSize = 1_000

type Linked = Selectable<TxnTable> & { readonly chain: string; readonly seq: number }

/** I8: every chain is whole. Reports only the first bad place of a chain, since every later hash depends on it. */
export async function brokenChains(tx: Tx): Promise<Breach[]> {
  const ends = await tx.selectFrom('chain').selectAll().orderBy('id').execute()
  const breaches = await unlinked(tx, ends.find(({ id }) => id === '')?.seq ?? 0)
  const known = new Map(ends.map((end) => [end.id, end]))
  for (const { id, seq, hash } of ends) {
    if (id === '') continue
    const found = await walk(tx, id)
    if (found.broken !== undefined) breaches.push(found.broken)
    else if (found.seq !== seq || found.hash !== hash) {
      breaches.push({ rule: 'I8', subject: id, why: `the chain ends at ${found.seq}, its end was recorded as ${seq}` })
    }
  }
  const strays = await tx.selectFrom('txn').select('chain').distinct().where('chain', 'is not', null).execute()
  for (const { chain } of strays) {
    if (chain !== null && !known.has(chain))
      breaches.push({ rule: 'I8', subject: chain, why: 'a chain without an end' })
  }
  return breaches
}

/** Postings from before chains existed are only counted: one more than expected was inserted later. */
async function unlinked(tx: Tx, expected: number): Promise<Breach[]> {
  const { rows } = await tx
    .selectFrom('txn')
    .select((eb) => eb.fn.countAll<number>().as('rows'))
    .where('chain', 'is', null)
    .executeTakeFirstOrThrow()
  if (rows === expected) return []
  return [{ rule: 'I8', subject: 'txn', why: `${rows} postings stand in no chain, ${expected} did when chains began` }]
}

async function walk(tx: Tx, chain: string): Promise<{ seq: number; hash: string; broken?: Breach }> {
  let seq = 0
  let hash = ''
  for (;;) {
    const page = await readPage(tx, chain, seq)
    for (const { txn, entries } of page) {
      const broken = (why: string) => ({ seq, hash, broken: { rule: 'I8', subject: txn.id, why } as const })
      if (txn.seq !== seq + 1) return broken(`place ${seq + 1} of chain ${chain} is missing before it`)
      const place = { chain, seq: txn.seq, before: hash }
      if (hashOf(place, { ...txn, usage: json(txn.usage) }, entries) !== txn.hash) {
        return broken(`place ${txn.seq} of chain ${chain} is not what was written there`)
      }
      seq = txn.seq
      hash = txn.hash
    }
    if (page.length < pageSize) return { seq, hash }
  }
}

async function readPage(tx: Tx, chain: string, after: number): Promise<{ txn: Linked; entries: EntryRow[] }[]> {
  const txns = await tx
    .selectFrom('txn')
    .selectAll()
    .where('chain', '=', chain)
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(pageSize)
    .execute()
  if (txns.length === 0) return []
  const last = txns.at(-1)?.seq ?? 0
  const entries = await tx
    .selectFrom('entry')
    .innerJoin('txn', 'txn.id', 'entry.txn_id')
    .select(['entry.txn_id', 'entry.account', 'entry.amount'])
    .where('txn.chain', '=', chain)
    .where('txn.seq', '>', after)
    .where('txn.seq', '<=', last)
    .execute()
  const byTxn = Map.groupBy(entries, ({ txn_id: id }) => id)
  return txns.map((txn) => ({ txn: { ...txn, chain, seq: txn.seq ?? 0 }, entries: byTxn.get(txn.id) ?? [] }))
}
