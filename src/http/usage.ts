import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import { unixSecondsOrNull } from '../base/moment.ts'
import { formatDollars, nano, type Nano } from '../base/money.ts'
import { endOf, startOf, type CappedBilling } from '../billing/caps.ts'
import { bearerOf } from '../edge/credential.ts'
import { queryOf } from '../edge/target.ts'
import type { Line } from '../flow/run.ts'
import type { Principal } from '../keys/key-ring.ts'
import { exactText, pageFields, periodFields, readQuery, sumPageFields } from '../reports/query.ts'
import { reportRequests, type ShownRequest } from '../reports/requests.ts'
import { customerGroupings, reportUsage } from '../reports/usage.ts'
import { accountById, available } from '../store/accounts.ts'
import type { SpendingCap } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { heldByTasks } from '../store/task-lists.ts'
import { spentSince, type UsageFilter } from '../store/usage.ts'
import { serveKeyed } from './keyed.ts'

export type UsageParts = {
  readonly line: Line
  readonly store: Store
  readonly clock: Clock
  /** Brings the rows of these accounts up to date; see `Books.bringUpToDate`. */
  readonly bringUpToDate: (accountIds: readonly string[]) => Promise<void>
  readonly heldHere: CappedBilling['heldHere']
}

const key = z.literal('self', { error: "only 'self', the calling key" }).exactOptional()
const sums = z.strictObject({
  ...periodFields,
  ...sumPageFields,
  key,
  model: exactText.exactOptional(),
  group_by: z.enum(customerGroupings).exactOptional(),
  // `records=true` has a query of its own, below; it is listed here so that the error for another value names it.
  records: z.enum(['true', 'false']).exactOptional(),
})
// The reference lists both parameters, so their refusal must not call them unknown. It does not name `records` either:
// the tool that asks here has another name for it.
const notHere = z
  .string()
  .refine(() => false, 'it is for totals, not for single requests')
  .exactOptional()
const records = z.strictObject({
  ...periodFields,
  ...pageFields,
  key,
  records: z.literal('true'),
  // There is no filter by model here, because it could walk through millions of rows to find a few.
  model: notHere,
  group_by: notHere,
})

/** `GET /v1/usage`: sums of the calling key's account, or with `?records=true` its single requests. */
export function serveUsage({ line, store, bringUpToDate }: UsageParts) {
  return serveKeyed(line, bearerOf, async ({ request }, principal) => {
    if (queryOf(request).get('records') === 'true') {
      const query = readQuery(request, records)
      await bringUpToDate([])
      const page = await reportRequests(store.db, filterOf(principal, query), query)
      return { ...page, data: page.data.map(withoutAccount) }
    }
    const query = readQuery(request, sums)
    await bringUpToDate([])
    return reportUsage(store, filterOf(principal, query), query, 'customer')
  })
}

/** The caller knows its own account. */
function withoutAccount({ account: _account, ...record }: ShownRequest) {
  return record
}

type Asked = { key?: 'self'; model?: string; from?: number; to?: number }

/** The account is the caller's, whatever the query says. */
function filterOf({ accountId, keyId }: Principal, { key, model, from, to }: Asked): UsageFilter {
  return { scope: { accountId }, keyId: key === 'self' ? keyId : undefined, model, from, to }
}

/** `GET /v1/balance`: what the account has, and what its caps and those of the calling key leave of it. */
export function serveBalance({ line, store, clock, bringUpToDate, heldHere }: UsageParts) {
  return serveKeyed(line, bearerOf, async (_visit, { accountId, caps }) => {
    // Read before what is spent, so that a request that ends in between counts in both rather than in neither.
    const held = caps.map((cap) => ({ cap, heldByRequests: heldHere(cap.of) }))
    await bringUpToDate([accountId])
    const account = await accountById(store.db, accountId)
    if (account === undefined) throw new Error(`account ${accountId} of a good key is gone`)
    return {
      balance: formatDollars(account.posted),
      held: formatDollars(account.held),
      available: formatDollars(available(account)),
      currency: 'USD',
      unlimited: account.unlimited,
      caps: await Promise.all(held.map((each) => showCap(store, each, clock.now()))),
    }
  })
}

type HeldOf = { readonly cap: SpendingCap; readonly heldByRequests: Nano }

async function showCap(store: Store, { cap, heldByRequests }: HeldOf, now: number) {
  const { of, amount, period } = cap
  const held = heldByRequests + (await heldByTasks(store.db, of))
  const spent = await spentSince(store.db, { ...of, since: startOf(period, now) })
  const left = amount - spent - held
  return {
    of: of.keyId === undefined ? 'account' : 'key',
    amount: formatDollars(amount),
    period,
    spent: formatDollars(spent),
    remaining: formatDollars(nano(left > 0n ? left : 0n)),
    resets_at: unixSecondsOrNull(endOf(period, now)),
  }
}
