import type { ColumnType, Kysely, Transaction } from 'kysely'
import type { Nano } from '../base/money.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { Usage } from '../capabilities/usage.ts'
import { taskKinds, type TaskSchema } from './task-schema.ts'

/**
 * The tables as code sees them, the same on both engines. Times are unix milliseconds. JSON is stored as text and
 * written through `json()` alone, so a caller cannot hand an object to a driver that would guess how to bind it.
 */
export type Json<T> = ColumnType<T, JsonText<T>, JsonText<T>>
export type JsonText<T> = string & { readonly __json: T }

export type Mode = 'sandbox' | 'real'
export type CapPeriod = 'total' | 'day' | 'month'
export type Basis = 'vendor' | 'estimated' | 'policy_zero' | 'manual'
export type HoldKind = 'request' | 'task'
export type HoldState = 'open' | 'settled' | 'void'
export type TxnKind = 'credit' | 'settle' | 'loss' | 'correction'

/** What a key's requests may be limited to. A new limit does not compile until operators can give it and see it. */
export const keyLimits = ['requestsPerMinute', 'tokensPerMinute', 'concurrent'] as const
export type KeyLimit = (typeof keyLimits)[number]
export type KeyLimits = { readonly [L in KeyLimit]?: number }
export type Metadata = { readonly [name: string]: string }
type Plain = string | number | boolean | null
export type AuditDetail = {
  readonly [name: string]: Plain | readonly string[] | { readonly [name: string]: Plain }
}

export type AccountTable = {
  id: string
  name: string
  mode: Mode
  unlimited: boolean
  enabled: boolean
  posted: Nano
  held: Nano
  cap_amount: Nano | null
  cap_period: CapPeriod | null
  created_at: number
}

export type ApiKeyTable = {
  id: string
  account_id: string
  digest: string
  hint: string
  name: string
  models: Json<readonly string[] | null>
  limits: Json<KeyLimits | null>
  cap_amount: Nano | null
  cap_period: CapPeriod | null
  expires_at: number | null
  enabled: boolean
  revoked_at: number | null
  metadata: Json<Metadata>
  created_at: number
}

export type AdminKeyTable = { digest: string; created_at: number }

export type HoldTable = {
  id: string
  account_id: string
  key_id: string
  kind: HoldKind
  amount: Nano
  price_version: string
  deadline: number
  state: HoldState
  node: string
  created_at: number
  ended_at: number | null
}

export type TxnTable = {
  id: string
  kind: TxnKind
  hold_id: string | null
  price_version: string | null
  usage: Json<Usage | null>
  basis: Basis
  note: string | null
  created_at: number
  /** The posting's place in a hash chain; see `chain.ts`. */
  chain: string | null
  seq: number | null
  hash: string | null
}

export type EntryTable = { txn_id: string; account: string; amount: Nano }

export type RequestTable = {
  id: string
  account_id: string
  key_id: string
  model: string
  capability: Capability
  status: number
  cost: Nano
  basis: Basis
  usage: Json<Usage | null>
  streamed: boolean
  duration_ms: number
  created_at: number
  /** The id under which its postings are looked up. */
  hold_id: string | null
}

export type AttemptTable = {
  id: string
  request_id: string
  channel: string
  vendor: string
  upstream_model: string
  status: number
  /** What the vendor charges as far as we know; after reconciliation, what its bill says. */
  vendor_cost: Nano
  /** Whether the customer got this attempt's output, and so pays for it. Null in rows from before this column. */
  delivered: boolean | null
  created_at: number
  /** The cost on record before the vendor's bill corrected it; null where it was never corrected. */
  recorded_cost: Nano | null
}

/** The end of a chain of postings; see `chain.ts`. */
export type ChainTable = { id: string; seq: number; hash: string }

export type RevisionTable = { name: string; value: number }
export type AuditTable = {
  id: string
  at: number
  actor: string
  action: string
  subject: string
  detail: Json<AuditDetail>
}
export type SettingTable = { name: string; value: string }

/** A gateway node, with the epoch of its current process and the number of its last turn; see `turns.ts`. */
export type NodeTable = { id: string; epoch: number; turn: number; seen_at: number }

/** The part of an account's balance that a node may spend without asking the database. */
export type LeaseTable = { node: string; account_id: string; amount: Nano }

/** An answer kept for a client that repeats its request under the same Idempotency-Key. */
export type IdempotencyTable = {
  account_id: string
  path: string
  key_digest: string
  fingerprint: string
  state: 'running' | 'done'
  request_id: string
  node: string
  status: number | null
  sealed_body: string | null
  created_at: number
}

/** Usage summed by hour; see `rollups.ts`. */
export type UsageHourTable = {
  hour: number
  account_id: string
  key_id: string
  model: string
  capability: Capability
  vendor: string
  requests: number
  cost: Nano
  vendor_cost: Nano
  images: number
  video_seconds: number
  input: number
  cached_input: number
  cache_write: number
  cache_write_hour: number
  image_input: number
  audio_input: number
  output: number
  image_output: number
  audio_output: number
  character: number
  video_token: number
  web_search: number
  reasoning: number
}

export type Schema = TaskSchema & {
  account: AccountTable
  api_key: ApiKeyTable
  admin_key: AdminKeyTable
  hold: HoldTable
  txn: TxnTable
  entry: EntryTable
  request: RequestTable
  attempt: AttemptTable
  chain: ChainTable
  revision: RevisionTable
  audit: AuditTable
  setting: SettingTable
  node: NodeTable
  lease: LeaseTable
  idempotency: IdempotencyTable
  usage_hour: UsageHourTable
  /** The same sums by day; `hour` is the first hour of the day. */
  usage_day: UsageHourTable
}

/** A connection or a transaction, for queries that are correct on their own. */
export type Queries = Kysely<Schema>
/** For queries that are only correct together with others in the same transaction. */
export type Tx = Transaction<Schema>

/**
 * Whose rows a query may touch. Every query that could span accounts takes a scope, so that a forgotten filter cannot
 * show a customer another account's rows.
 */
export type Scope = { readonly accountId: string } | 'every-account'

/** How a column's value is converted so that it is the same on both engines. */
export type ColumnKind = 'text' | 'money' | 'number' | 'boolean' | 'json'

type Selected<C> = C extends ColumnType<infer S, infer _I, infer _U> ? { json: S } : C
type KindOf<C> =
  Selected<C> extends { json: unknown }
    ? 'json'
    : NonNullable<Selected<C>> extends bigint
      ? 'money'
      : NonNullable<Selected<C>> extends number
        ? 'number'
        : NonNullable<Selected<C>> extends boolean
          ? 'boolean'
          : 'text'
type Kinds = { readonly [T in keyof Schema]: { readonly [C in keyof Schema[T]]: KindOf<Schema[T][C]> } }

const usageKinds = {
  hour: 'number',
  account_id: 'text',
  key_id: 'text',
  model: 'text',
  capability: 'text',
  vendor: 'text',
  requests: 'number',
  cost: 'money',
  vendor_cost: 'money',
  images: 'number',
  video_seconds: 'number',
  input: 'number',
  cached_input: 'number',
  cache_write: 'number',
  cache_write_hour: 'number',
  image_input: 'number',
  audio_input: 'number',
  output: 'number',
  image_output: 'number',
  audio_output: 'number',
  character: 'number',
  video_token: 'number',
  web_search: 'number',
  reasoning: 'number',
} as const

/** The kind of every column; a wrong or missing one does not compile. */
export const columnKinds = {
  account: {
    id: 'text',
    name: 'text',
    mode: 'text',
    unlimited: 'boolean',
    enabled: 'boolean',
    posted: 'money',
    held: 'money',
    cap_amount: 'money',
    cap_period: 'text',
    created_at: 'number',
  },
  api_key: {
    id: 'text',
    account_id: 'text',
    digest: 'text',
    hint: 'text',
    name: 'text',
    models: 'json',
    limits: 'json',
    cap_amount: 'money',
    cap_period: 'text',
    expires_at: 'number',
    enabled: 'boolean',
    revoked_at: 'number',
    metadata: 'json',
    created_at: 'number',
  },
  admin_key: { digest: 'text', created_at: 'number' },
  hold: {
    id: 'text',
    account_id: 'text',
    key_id: 'text',
    kind: 'text',
    amount: 'money',
    price_version: 'text',
    deadline: 'number',
    state: 'text',
    node: 'text',
    created_at: 'number',
    ended_at: 'number',
  },
  txn: {
    id: 'text',
    kind: 'text',
    hold_id: 'text',
    price_version: 'text',
    usage: 'json',
    basis: 'text',
    note: 'text',
    created_at: 'number',
    chain: 'text',
    seq: 'number',
    hash: 'text',
  },
  entry: { txn_id: 'text', account: 'text', amount: 'money' },
  request: {
    id: 'text',
    account_id: 'text',
    key_id: 'text',
    model: 'text',
    capability: 'text',
    status: 'number',
    cost: 'money',
    basis: 'text',
    usage: 'json',
    streamed: 'boolean',
    duration_ms: 'number',
    created_at: 'number',
    hold_id: 'text',
  },
  attempt: {
    id: 'text',
    request_id: 'text',
    channel: 'text',
    vendor: 'text',
    upstream_model: 'text',
    status: 'number',
    vendor_cost: 'money',
    delivered: 'boolean',
    created_at: 'number',
    recorded_cost: 'money',
  },
  chain: { id: 'text', seq: 'number', hash: 'text' },
  revision: { name: 'text', value: 'number' },
  audit: { id: 'text', at: 'number', actor: 'text', action: 'text', subject: 'text', detail: 'json' },
  setting: { name: 'text', value: 'text' },
  node: { id: 'text', epoch: 'number', turn: 'number', seen_at: 'number' },
  lease: { node: 'text', account_id: 'text', amount: 'money' },
  idempotency: {
    account_id: 'text',
    path: 'text',
    key_digest: 'text',
    fingerprint: 'text',
    state: 'text',
    request_id: 'text',
    node: 'text',
    status: 'number',
    sealed_body: 'text',
    created_at: 'number',
  },
  usage_hour: usageKinds,
  usage_day: usageKinds,
  ...taskKinds,
} as const satisfies Kinds

/** The kinds of columns that queries compute or rename. A result with a number under an unknown name is refused. */
export const derivedKinds = {
  account_enabled: 'boolean',
  account_cap_amount: 'money',
  request_status: 'number',
  requested_at: 'number',
  total: 'money',
  expected: 'money',
  rows: 'number',
  first: 'number',
  until: 'number',
  settles: 'number',
  losses: 'number',
} as const satisfies Record<string, ColumnKind>
