import { type Nano, nano } from '../../src/base/money.ts'
import { createAccount } from '../../src/store/accounts.ts'
import type { NewHold } from '../../src/store/holds.ts'
import type { Settlement } from '../../src/store/ledger.ts'
import type { Store } from '../../src/store/open.ts'
import type { AttemptRecord, RequestRecord } from '../../src/store/requests.ts'

/** Plain examples of the ledger's inputs; a test varies the one field it is about. */
export const accountId = 'acc_a'

export async function fundedAccount(
  store: Store,
  options: { id?: string; amount?: bigint; unlimited?: boolean } = {},
): Promise<string> {
  const { id = accountId, amount = 1_000n, unlimited = false } = options
  const made = await createAccount(store, {
    id,
    name: id,
    mode: 'sandbox',
    actor: 'test',
    unlimited,
    ...(amount !== 0n && { credit: { amount: nano(amount), source: 'promo' } }),
  })
  if (made.outcome !== 'created') throw new Error(made.outcome)
  return id
}

export function holdOf(id: string, amount: bigint, overrides: Partial<NewHold> = {}): NewHold {
  return {
    id,
    accountId,
    keyId: 'key_a',
    kind: 'request',
    amount: nano(amount),
    priceVersion: 'v1',
    deadline: Date.now() + 600_000,
    node: 'node_a',
    ...overrides,
  }
}

export function requestOf(id: string, overrides: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id: `req_${id}`,
    keyId: 'key_a',
    model: 'gpt-x',
    capability: 'chat',
    status: 200,
    streamed: false,
    durationMs: 12,
    createdAt: 1_800_000_000_000,
    ...overrides,
  }
}

export function attemptOf(id: string, vendorCost: bigint, overrides: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    id: `att_${id}`,
    channel: 'openai-main',
    vendor: 'openai',
    upstreamModel: 'gpt-x-2026',
    status: 200,
    vendorCost: nano(vendorCost),
    delivered: true,
    createdAt: 1_800_000_000_000,
    ...overrides,
  }
}

export function settlementOf(id: string, price: bigint, overrides: Partial<Settlement> = {}): Settlement {
  return {
    hold: { id, accountId },
    price: nano(price),
    basis: 'vendor',
    usage: { input: 3, output: 4 },
    request: requestOf(id),
    attempts: [],
    ...overrides,
  }
}

/** The sum of all entries under each account's name. */
export async function balances(store: Store): Promise<Record<string, Nano>> {
  const rows = await store.db.selectFrom('entry').select(['account', 'amount']).execute()
  const sums: Record<string, Nano> = {}
  for (const { account, amount } of rows) sums[account] = nano((sums[account] ?? 0n) + amount)
  return sums
}
