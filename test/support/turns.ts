import { nano } from '../../src/base/money.ts'
import type { Store } from '../../src/store/open.ts'
import type { Posting, Turn } from '../../src/store/turns.ts'
import { accountId, attemptOf, requestOf } from './ledger.ts'

/** Plain examples of what a node sends to the bank; a test varies the one field it is about. */
export function turnOf(number: number, parts: Partial<Turn> = {}): Turn {
  return { number, postings: [], takes: [], returns: [], ...parts }
}

export function takeOf(need: bigint, extra = 0n, account = accountId) {
  return { accountId: account, waiting: [nano(need)], left: nano(0n), extra: nano(extra) }
}

export function returnOf(amount: bigint, account = accountId) {
  return { accountId: account, amount: nano(amount) }
}

export function postingOf(id: string, charge: bigint, overrides: Partial<Posting> = {}): Posting {
  return {
    holdId: `hold_${id}`,
    accountId,
    priceVersion: 'v1',
    charge: nano(charge),
    excess: nano(0n),
    basis: 'vendor',
    usage: { input: 3, output: 4 },
    request: requestOf(id),
    attempts: [attemptOf(id, charge / 2n)],
    ...overrides,
  }
}

/** The bank's state, in the shape of the model bank's. */
export async function standingOf(store: Store) {
  const accounts = await store.db.selectFrom('account').select(['id', 'posted', 'held']).orderBy('id').execute()
  const leases = await store.db
    .selectFrom('lease')
    .select(['node', 'account_id', 'amount'])
    .where('amount', '<>', nano(0n))
    .orderBy('node')
    .orderBy('account_id')
    .execute()
  return { accounts, leases: leases.map(({ node, account_id: account, amount }) => ({ node, account, amount })) }
}
