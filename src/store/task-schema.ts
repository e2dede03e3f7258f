import type { JsonObject } from '../base/json.ts'
import type { Bound } from '../capabilities/ask.ts'
import type { Usage } from '../capabilities/usage.ts'
import { taskStates, type VideoAsk, type VideoFacts, type VideoResult } from '../capabilities/video.ts'
import type { Json } from './schema.ts'

/**
 * How far a task has come, as it is stored. `creating`: recorded, and the vendor's id is not known; `refused`: the vendor
 * would not have it, and whoever asked was told so at once. The rest is what clients see; see `tasks/state.ts`.
 */
export const storedTaskStates = ['creating', ...taskStates, 'refused'] as const
export type StoredTaskState = (typeof storedTaskStates)[number]

export type TaskError = { readonly code: string; readonly message: string }

/** What is kept of an ask for as long as its task is: what its vendor's records leave out, and billing follows. */
export type TaskFacts = VideoFacts & { readonly bound: Bound }

export type TaskResult = VideoResult & {
  /** Unix milliseconds: from then on the links lead nowhere. */
  readonly expiresAt: number
  /** What the vendor gave, where links of ours stand in its place: its record holds them too. */
  readonly vendorUrl?: string
  readonly vendorFrameUrl?: string
}

/** A price list as text can hold it: every price is a decimal number of picos. */
export type StoredPriceList = {
  readonly version: string
  readonly rates: StoredRates
  readonly tiers: readonly { readonly aboveInputTokens: number; readonly rates: StoredRates }[]
  readonly perImage: StoredRates
  readonly perSecond: StoredRates
  /** Absent in what was kept before films had a price of their own. */
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
  /** Nobody knows whether the vendor has it. */
  in_doubt: boolean
  /** How often it was sent: once, and once more where the first was surely not received. */
  sends: number
  sent_at: number
  /** What was asked, until the vendor has taken it; sent again from here. */
  ask: Json<VideoAsk | null>
  facts: Json<TaskFacts>
  /** The vendor's own, as it said last. */
  record: Json<JsonObject | null>
  result: Json<TaskResult | null>
  /** What the vendor counted, from when it said that the film is made. */
  usage: Json<Usage | null>
  failure: Json<TaskError | null>
  /** What it is sold and bought for, whatever happens to prices while it runs. */
  prices: Json<StoredPriceList>
  costs: Json<StoredPriceList>
  webhook_url: string | null
  created_at: number
  updated_at: number
  finished_at: number | null
  deadline: number
  /** Absent: nobody has to look at it again. */
  next_poll_at: number | null
  polls: number
  /** Polls that told nothing, in a row; once the film is made, tries to have it. */
  failures: number
  /** Times in a row that the vendor did not know it. */
  lost: number
  claim_owner: string | null
  claim_until: number | null
}

export type WebhookEventState = 'pending' | 'delivered' | 'gone' | 'given-up'

/** The outbox: at most one event of a task, written in the commit that ends the task, and delivered from here. */
export type WebhookEventTable = {
  id: string
  account_id: string
  task_id: string
  url: string
  /** Of the url, for whoever paces deliveries. */
  host: string
  /** The very bytes that are signed and sent, however often. */
  payload: string
  state: WebhookEventState
  attempts: number
  /** Absent: it is not to be tried again. */
  next_at: number | null
  claim_owner: string | null
  claim_until: number | null
  created_at: number
}

export type WebhookAttemptTable = {
  id: string
  event_id: string
  /** As answered; 0 where no answer came. */
  status: number
  /** Why there was none. */
  why: string | null
  /** How an answer that was not a yes begins. */
  excerpt: string | null
  duration_ms: number
  created_at: number
}

export type WebhookSecretTable = {
  id: string
  account_id: string
  sealed: string
  created_at: number
  /** Set when another takes its place. */
  expires_at: number | null
}

export type TaskSchema = {
  task: TaskTable
  webhook_event: WebhookEventTable
  webhook_attempt: WebhookAttemptTable
  webhook_secret: WebhookSecretTable
}

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
