import { newId, newOpaqueId } from '../../src/base/ids.ts'
import { zeroNano } from '../../src/base/money.ts'
import { createAccount } from '../../src/store/accounts.ts'
import type { Store } from '../../src/store/open.ts'
import { json } from '../../src/store/rows.ts'
import type { Mode } from '../../src/store/schema.ts'

export type PutEvent = {
  readonly url: string
  readonly payload?: string
  /** When the task ended; by default now. */
  readonly at?: number
}

const rowsPerInsert = 200

export async function putAccount(store: Store, mode: Mode = 'sandbox'): Promise<string> {
  const id = newId('acc')
  await createAccount(store, { id, name: id, mode, actor: 'test' })
  return id
}

/** Stores events as the commit that ends their tasks does; returns their ids. */
export async function putEvents(store: Store, accountId: string, events: readonly PutEvent[]): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < events.length; i += rowsPerInsert) {
    const some = events.slice(i, i + rowsPerInsert).map((event) => rowsOf(accountId, { at: store.now(), ...event }))
    await store.transaction(async (tx) => {
      await tx
        .insertInto('hold')
        .values(some.map(({ hold }) => hold))
        .execute()
      await tx
        .insertInto('task')
        .values(some.map(({ task }) => task))
        .execute()
      await tx
        .insertInto('webhook_event')
        .values(some.map(({ event }) => event))
        .execute()
    })
    ids.push(...some.map(({ event }) => event.id))
  }
  return ids
}

export async function putEvent(store: Store, accountId: string, event: PutEvent): Promise<string> {
  const [id = ''] = await putEvents(store, accountId, [event])
  return id
}

const noPrices = { version: 'test', rates: {}, tiers: [], perImage: {}, perSecond: {}, perVideoToken: {} }

function rowsOf(accountId: string, { url, payload, at }: PutEvent & { readonly at: number }) {
  const id = newOpaqueId('vid')
  const shared = { account_id: accountId, key_id: 'key_test', created_at: at }
  const hold = {
    ...shared,
    id: newId('hold'),
    kind: 'task' as const,
    amount: zeroNano,
    price_version: 'test',
    deadline: at,
    state: 'void' as const,
    node: 'test',
    ended_at: at,
  }
  const task = {
    ...shared,
    id,
    request_id: newId('txn'),
    hold_id: hold.id,
    attempt_id: newId('txn'),
    model: 'a-model',
    vendor: 'a-vendor',
    channel: 'a-channel',
    upstream_model: 'a-model',
    upstream_id: null,
    // In line with its hold: nothing was sold.
    state: 'failed' as const,
    in_doubt: false,
    sends: 1,
    sent_at: at,
    ask: json(null),
    facts: json({} as never),
    record: json(null),
    result: json(null),
    usage: json(null),
    failure: json(null),
    prices: json(noPrices),
    costs: json(noPrices),
    webhook_url: url,
    updated_at: at,
    finished_at: at,
    deadline: at,
    next_poll_at: null,
    polls: 0,
    failures: 0,
    lost: 0,
    claim_owner: null,
    claim_until: null,
  }
  const event = {
    id: newOpaqueId('evt'),
    account_id: accountId,
    task_id: id,
    url,
    host: new URL(url).host,
    payload: payload ?? JSON.stringify({ type: 'video.generation.succeeded', created_at: 1, data: { id, ä: '✓ 🎬' } }),
    state: 'pending' as const,
    attempts: 0,
    next_at: at,
    claim_owner: null,
    claim_until: null,
    created_at: at,
  }
  return { hold, task, event }
}
