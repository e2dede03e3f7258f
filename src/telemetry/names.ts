/**
 * One metric as scrapers see it. Every label has few values: they come from our own tables, the catalogue or the
 * settings, never from a client.
 */
type Spec = {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
}

/** All metrics. `read.ts` says where each is read from, and does not compile while one is missing there. */
export const metrics = {
  responses: {
    name: 'turnpike_http_responses_total',
    kind: 'counter',
    help: 'Answers on every port, by route and status.',
    labels: ['route', 'status'],
  },
  refused: {
    name: 'turnpike_requests_refused_total',
    kind: 'counter',
    help: 'Requests that were answered with an error before any money was set aside for them.',
    labels: ['route', 'status'],
  },
  requests: {
    name: 'turnpike_requests_total',
    kind: 'counter',
    help: 'Requests that were admitted and have ended, by the status on their record.',
    labels: ['capability', 'model', 'status'],
  },
  durations: {
    name: 'turnpike_request_duration_seconds',
    kind: 'histogram',
    help: 'From the arrival of an admitted request to its end.',
    labels: ['capability', 'streamed'],
  },
  requestSeconds: {
    name: 'turnpike_request_seconds_total',
    kind: 'counter',
    help: 'How long all admitted requests of a model took together.',
    labels: ['capability', 'model'],
  },
  tokens: {
    name: 'turnpike_tokens_total',
    kind: 'counter',
    help: 'Tokens that were charged for. Kinds do not overlap.',
    labels: ['capability', 'model', 'kind'],
  },
  characters: {
    name: 'turnpike_characters_total',
    kind: 'counter',
    help: 'Characters that were charged for.',
    labels: ['capability', 'model'],
  },
  images: {
    name: 'turnpike_images_total',
    kind: 'counter',
    help: 'Images that were charged per image.',
    labels: ['capability', 'model'],
  },
  videoSeconds: {
    name: 'turnpike_video_seconds_total',
    kind: 'counter',
    help: 'Seconds of video that were charged for.',
    labels: ['capability', 'model'],
  },
  webSearches: {
    name: 'turnpike_web_searches_total',
    kind: 'counter',
    help: 'Web searches of vendors that were charged for.',
    labels: ['capability', 'model'],
  },
  charged: {
    name: 'turnpike_charged_dollars_total',
    kind: 'counter',
    help: 'What customers were charged. The ledger is the truth; this is a float.',
    labels: ['capability', 'model'],
  },
  vendorCost: {
    name: 'turnpike_vendor_cost_dollars_total',
    kind: 'counter',
    help: 'What vendors charge by our cost prices, failed attempts included.',
    labels: ['capability', 'model'],
  },
  attempts: {
    name: 'turnpike_attempts_total',
    kind: 'counter',
    help: 'Calls to vendors for admitted requests, by what came of them.',
    labels: ['channel', 'vendor', 'outcome'],
  },
  openHolds: {
    name: 'turnpike_open_holds',
    kind: 'gauge',
    help: 'Requests under way with money set aside, on this node. Video tasks are counted apart.',
    labels: [],
  },
  unposted: {
    name: 'turnpike_unposted_endings',
    kind: 'gauge',
    help: 'Ended requests that this node knows of, and the database not yet.',
    labels: [],
  },
  openTasks: {
    name: 'turnpike_video_tasks_open',
    kind: 'gauge',
    help: 'Video tasks that are not over, of all nodes together.',
    labels: ['state'],
  },
  tasksInDoubt: {
    name: 'turnpike_video_tasks_in_doubt',
    kind: 'gauge',
    help: 'Open video tasks that the vendor may or may not have received, of all nodes together.',
    labels: [],
  },
  pollLag: {
    name: 'turnpike_video_poll_lag_seconds',
    kind: 'gauge',
    help: 'How long the most overdue video task has been waiting to be polled.',
    labels: [],
  },
  tasksEnded: {
    name: 'turnpike_video_tasks_ended_total',
    kind: 'counter',
    help: 'Video tasks whose end this node saw first.',
    labels: ['model', 'state'],
  },
  unknownStates: {
    name: 'turnpike_unknown_task_states_total',
    kind: 'counter',
    help: 'How often a vendor reported a video state that the gateway does not know.',
    labels: ['channel'],
  },
  deliveries: {
    name: 'turnpike_webhook_deliveries_total',
    kind: 'counter',
    help: 'Attempts to deliver webhooks, by what follows from them.',
    labels: ['outcome'],
  },
  waitingWebhooks: {
    name: 'turnpike_webhooks_waiting',
    kind: 'gauge',
    help: 'Webhooks that are still to be delivered, now or later, of all nodes together.',
    labels: [],
  },
  webhookLag: {
    name: 'turnpike_webhook_lag_seconds',
    kind: 'gauge',
    help: 'How long the most overdue webhook has been waiting to be sent.',
    labels: [],
  },
  reloads: {
    name: 'turnpike_config_reloads_total',
    kind: 'counter',
    help: 'Changed configurations: taken into use, or rejected, so that the old one stays.',
    labels: ['outcome'],
  },
  models: {
    name: 'turnpike_models',
    kind: 'gauge',
    help: 'Models on sale.',
    labels: [],
  },
  databaseUp: {
    name: 'turnpike_database_up',
    kind: 'gauge',
    help: 'Whether the database answered this scrape; if not, metrics read from it are absent.',
    labels: [],
  },
  draining: {
    name: 'turnpike_draining',
    kind: 'gauge',
    help: 'Whether this node is about to stop.',
    labels: [],
  },
  build: {
    name: 'turnpike_build_info',
    kind: 'gauge',
    help: 'Always 1; the labels say what runs.',
    labels: ['version', 'mode'],
  },
  loopDelay: {
    name: 'turnpike_event_loop_delay_seconds',
    kind: 'histogram',
    help: 'How late a timer of the event loop was, sampled since the first scrape.',
    labels: [],
  },
  heap: {
    name: 'turnpike_heap_used_bytes',
    kind: 'gauge',
    help: 'Memory used by JavaScript.',
    labels: [],
  },
  memory: {
    name: 'process_resident_memory_bytes',
    kind: 'gauge',
    help: 'Memory of the process.',
    labels: [],
  },
  cpu: {
    name: 'process_cpu_seconds_total',
    kind: 'counter',
    help: 'CPU time used by the process.',
    labels: [],
  },
  started: {
    name: 'process_start_time_seconds',
    kind: 'gauge',
    help: 'When the process started, in unix seconds.',
    labels: [],
  },
} as const satisfies Readonly<Record<string, Spec>>

export type MetricKey = keyof typeof metrics

/** A value for each label of a metric, and for nothing else. */
export type LabelsOf<K extends MetricKey> = Readonly<Record<(typeof metrics)[K]['labels'][number], string>>

/** The label under which models or channels beyond `namesMax` are counted together. A catalogue has some hundred. */
export const other = 'other'
/** The route label of requests that match no route. */
export const noRoute = 'unknown'

export const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** The outcome of one call to a vendor. */
export const attemptOutcomes = ['delivered', 'unused', 'refused', 'limited', 'failed', 'unanswered'] as const
export type AttemptOutcome = (typeof attemptOutcomes)[number]

/** Kinds of tokens as scrapers see them, by their names in the code. */
export const tokenKinds = {
  input: 'input',
  cachedInput: 'cached_input',
  cacheWrite: 'cache_write',
  cacheWriteHour: 'cache_write_hour',
  imageInput: 'image_input',
  audioInput: 'audio_input',
  output: 'output',
  imageOutput: 'image_output',
  audioOutput: 'audio_output',
  videoToken: 'video',
} as const
export type TokenKind = keyof typeof tokenKinds
