import type { JsonObject } from '../base/json.ts'
import type { Bound } from '../capabilities/ask.ts'
import type { Usage } from '../capabilities/usage.ts'
import { taskStates, type VideoAsk, type VideoFacts, type VideoResult } from '../capabilities/video.ts'
import type { Json } from './schema.ts'

/**
 * The state of a task as it is stored. `creating`: recorded, but the vendor's id is not known; `refused`: the vendor
 * rejected it, and the client was told so at once. The others are what clients see; see `tasks/state.ts`.
 */
export const storedTaskStates = ['creating', ...taskStates, 'refused'] as const
export type StoredTaskState = (typeof storedTaskStates)[number]

export type TaskError = { readonly code: string; readonly message: string }

/** What is kept of an ask for as long as its task: what the vendor's record leaves out, and what billing depends on. */
export type TaskFacts = VideoFacts & { readonly bound: Bound }

export type TaskResult = VideoResult & {
  /** Unix milliseconds from which on the links no longer work. */
  readonly expiresAt: number
  /** The vendor's own links, where ours replace them: they are in the vendor's record too, and are replaced there. */
  readonly vendorUrl?: string
  readonly vendorFrameUrl?: string
}

/** A price list in a form that JSON can hold: every price is a decimal string of pico-dollars. */
export type StoredPriceList = {
  readonly version: string
  readonly rates: StoredRates
  readonly tiers: readonly { readonly aboveInputTokens: number; readonly rates: StoredRates }[]
  readonly perImage: StoredRates
  readonly perSecond: StoredRates
  /** Absent in rows from before videos had a price of their own. */
  readonly perVideo?: StoredRates
  readonly perVideoToken: StoredRates
}
export type StoredRates = Readonly<Record<string, string>>

export type TaskTable = {
  id: string
  account_id: string
  key_id: string
  request_id: string
  hold_id: string
  /** Our reference at the vendor, and the id of the attempt in the books. */
  attempt_id: string
  model: string
  vendor: string
  channel: string
  upstream_model: string
  upstream_id: string | null
  state: StoredTaskState
  /** Whether it is unknown if the vendor has the task. */
  in_doubt: boolean
  /** How often it was sent: again only where the vendor surely did not receive the send before. */
  sends: number
  sent_at: number
  /** The ask, kept until the vendor has accepted it, so that it can be sent again. */
  ask: Json<VideoAsk | null>
  facts: Json<TaskFacts>
  /** The vendor's own record, as it was last received. */
  record: Json<JsonObject | null>
  result: Json<TaskResult | null>
  /** What the vendor counted, set once it says that the video is made. */
  usage: Json<Usage | null>
  failure: Json<TaskError | null>
  /** The prices it is sold at, and below those it is bought at, pinned for as long as it runs. */
  prices: Json<StoredPriceList>
  costs: Json<StoredPriceList>
  webhook_url: string | null
  created_at: number
  updated_at: number
  finished_at: number | null
  deadline: number
  /** Null: it is not polled again. */
  next_poll_at: number | null
  polls: number
  /** Inconclusive polls in a row; once the video is made, failed tries to fetch it. */
  failures: number
  /** How many times in a row the vendor did not know the task. */
  lost: number
  claim_owner: string | null
  claim_until: number | null
}

export type WebhookEventState = 'pending' | 'delivered' | 'gone' | 'given-up'

/** The outbox: at most one event per task, written in the commit that ends the task, and delivered from here. */
export type WebhookEventTable = {
  id: string
  account_id: string
  task_id: string
  url: string
  /** The host of `url`, by which deliveries are paced. */
  host: string
  /** The exact bytes that are signed and sent in every attempt. */
  payload: string
  state: WebhookEventState
  attempts: number
  /** Null: it is not tried again. */
  next_at: number | null
  claim_owner: string | null
  claim_until: number | null
  created_at: number
}

export type WebhookAttemptTable = {
  id: string
  event_id: string
  /** The receiver's HTTP status; 0 where no answer came. */
  status: number
  /** Why no answer came. */
  why: string | null
  /** The beginning of an answer that was not a success. */
  excerpt: string | null
  duration_ms: number
  created_at: number
}

export type WebhookSecretTable = {
  id: string
  account_id: string
  sealed: string
  created_at: number
  /** Set when another secret replaces it. */
  expires_at: number | null
}

export type TaskSchema = {
  task: TaskTable
  webhook_event: WebhookEventTable
  webhook_attempt: WebhookAttemptTable
  webhook_secret: WebhookSecretTable
}

/**
 * Which node a task or an event belongs to for now. Once the time is over any node may claim it, and then the changes
 * of the old owner are refused.
 */
export type Claim = { readonly owner: string; readonly until: number }

/** A task or an event that belongs to no node. */
export const unclaimed = { claim_owner: null, claim_until: null } as const

/** The kind of every column, for `columnKinds`. */
export const taskKinds = {
  task: {
    id: 'text',
    account_id: 'text',
    key_id: 'text',
    request_id: 'text',
    hold_id: 'text',
    attempt_id: 'text',
    model: 'text',
    vendor: 'text',
    channel: 'text',
    upstream_model: 'text',
    upstream_id: 'text',
    state: 'text',
    in_doubt: 'boolean',
    sends: 'number',
    sent_at: 'number',
    ask: 'json',
    facts: 'json',
    record: 'json',
    result: 'json',
    usage: 'json',
    failure: 'json',
    prices: 'json',
    costs: 'json',
    webhook_url: 'text',
    created_at: 'number',
    updated_at: 'number',
    finished_at: 'number',
    deadline: 'number',
    next_poll_at: 'number',
    polls: 'number',
    failures: 'number',
    lost: 'number',
    claim_owner: 'text',
    claim_until: 'number',
  },
  webhook_event: {
    id: 'text',
    account_id: 'text',
    task_id: 'text',
    url: 'text',
    host: 'text',
    payload: 'text',
    state: 'text',
    attempts: 'number',
    next_at: 'number',
    claim_owner: 'text',
    claim_until: 'number',
    created_at: 'number',
  },
  webhook_attempt: {
    id: 'text',
    event_id: 'text',
    status: 'number',
    why: 'text',
    excerpt: 'text',
    duration_ms: 'number',
    created_at: 'number',
  },
  webhook_secret: { id: 'text', account_id: 'text', sealed: 'text', created_at: 'number', expires_at: 'number' },
} as const
