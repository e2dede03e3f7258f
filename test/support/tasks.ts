import { expect } from 'bun:test'
import { newRequestId } from '../../src/base/ids.ts'
import { makeLog } from '../../src/base/log.ts'
import { nano, pico } from '../../src/base/money.ts'
import type { PriceList } from '../../src/capabilities/usage.ts'
import type { VideoAsk } from '../../src/capabilities/video.ts'
import type { Model } from '../../src/catalogue/model.ts'
import { checkLedger } from '../../src/store/check.ts'
import type { Store } from '../../src/store/open.ts'
import { type Task, taskById } from '../../src/store/tasks.ts'
import { makeCallbacks } from '../../src/tasks/callbacks.ts'
import type { VideoOrder } from '../../src/tasks/create.ts'
import { usualPace } from '../../src/tasks/pace.ts'
import { openTasks, type Tasks } from '../../src/tasks/tasks.ts'
import { type Channel, makeChannels } from '../../src/upstream/channels.ts'
import { eachEngine } from './engines.ts'
import { type VideoVendor, videoVendor } from './video-vendor.ts'
import { fundedAccount } from './ledger.ts'
import { movableClock } from './movable-clock.ts'

const perSecond = (dollarsMillis: bigint): PriceList => ({
  version: `v${dollarsMillis}`,
  rates: {},
  tiers: [],
  perImage: {},
  perSecond: { '720p': pico(dollarsMillis * 1_000_000_000n) },
  perVideo: {},
  perVideoToken: {},
})

/** Sold for $0.3 a second and bought for $0.2, in nanos. */
export const price = { sold: 300_000_000n, bought: 200_000_000n } as const
export const deadlineSeconds = 3_600

const limits: VideoAsk['limits'] = {
  form: 'wan2.6',
  kinds: ['t2v'],
  resolutions: ['720p'],
  resolutionDefault: '720p',
  durations: [5, 10],
  durationDefault: 5,
  durationFree: false,
  ratios: [],
  referencesMax: 0,
  referenceVideosMax: 0,
  inputSecondsBilled: false,
  sound: 'never',
  deadlineSeconds,
} as unknown as VideoAsk['limits']

const ask: VideoAsk = {
  capability: 'video',
  model: 'film',
  stream: false,
  bound: { video: { seconds: 10, resolution: '720p' } },
  kind: 't2v',
  seconds: 10,
  isFreeLength: false,
  resolution: '720p',
  ratio: '16:9',
  sound: false,
  hasInputVideo: false,
  prompt: 'a secret prompt',
  media: [],
  input: { prompt: 'a secret prompt' },
  parameters: {},
  limits,
}

export const model = {
  id: 'film',
  capabilities: ['video'],
  offers: [{ channel: 'first', upstreamModel: 'film-1' }],
  prices: perSecond(300n),
  costs: perSecond(200n),
} as unknown as Model

export const accountId = 'acc_a'
/** What a hold covers: ten seconds. */
export const held = nano(10n * price.sold)

export function orderOf(overrides: Partial<VideoOrder> = {}): VideoOrder {
  return {
    requestId: newRequestId(),
    accountId,
    keyId: 'key_a',
    caps: [],
    ask,
    model,
    receivedAt: Date.now(),
    ...overrides,
  }
}

export type TaskWorld = {
  readonly tasks: Tasks
  readonly clock: ReturnType<typeof movableClock>
  readonly logged: string[]
  readonly told: () => number
  order(overrides?: Partial<VideoOrder>): Promise<Task>
  task(id: string): Promise<Task>
  /** Lets time pass and polls every task that is due by then. */
  pass(ms: number): Promise<void>
  /** Another node, with the same vendor and clock. */
  node(name: string): Tasks
  close(): Promise<void>
}

export type TaskOverrides = Partial<Parameters<typeof openTasks>[0]>

export const keepDays = 90

/** Timers never fire: a test polls when it wants. */
const noTimers = { after: () => () => {} }

const secret = (text: string) => Buffer.from(text.padEnd(32, 'x').slice(0, 32))

/** Tasks on a store and in-memory vendors, with a clock that a test moves. */
export function makeTaskWorld(
  store: Store,
  vendors: Readonly<Record<string, VideoVendor>>,
  overrides: TaskOverrides = {},
): TaskWorld {
  const clock = movableClock()
  const shared: Store = {
    ...store,
    // Read each time, because a test may make it unavailable.
    get db() {
      return store.db
    },
    now: () => (overrides.clock ?? clock).now(),
  }
  const logged: string[] = []
  const opened: Tasks[] = []
  let told = 0
  const channels: Channel[] = Object.entries(vendors).map(([id, { vendor }], priority) => ({
    id,
    vendor,
    baseUrl: 'https://films.example',
    credentials: ['key-of-the-channel'],
    weight: 1,
    priority,
  }))
  const known = makeChannels(channels, clock, () => 0)
  const ms = { connectMs: 1_000, firstByteMs: 1_000, idleMs: 1_000, totalMs: 60_000 }
  const [first] = Object.values(vendors)
  if (first === undefined) throw new Error('a world without a vendor')
  const node = (name: string): Tasks => {
    const made = openTasks({
      store: shared,
      node: name,
      mode: 'sandbox',
      clock,
      timers: noTimers,
      random: () => 0.5,
      log: makeLog({ level: 'info', write: (line) => logged.push(line) }),
      channels: () => known,
      transport: first.transport,
      fetchLink: () => Promise.reject(new Error('nothing is linked here')),
      tenantLabel: (text) => secret(text).toString('base64url'),
      timeouts: { create: ms, ask: ms, fetch: ms },
      attemptsMax: 3,
      pace: usualPace,
      keepMs: keepDays * 24 * 60 * 60_000,
      patience: { tries: 3, pauseMs: 1 },
      callbacks: makeCallbacks(secret, 'https://gateway.example'),
      keepResult: () => Promise.reject(new Error('nothing is kept here')),
      keepsAll: false,
      reserve: () => Promise.resolve({ kind: 'reserved', giveBack() {}, heldByTask() {} }),
      giveBackLeases: () => Promise.resolve(),
      wakeWebhooks: () => told++,
      ...overrides,
    })
    opened.push(made)
    return made
  }
  const tasks = node('node_a')
  return {
    tasks,
    clock,
    logged,
    told: () => told,
    async order(given) {
      const placed = await tasks.create(orderOf({ receivedAt: clock.now(), ...given }))
      if (placed.kind === 'no-funds') throw new Error('no funds')
      return placed.task
    },
    async task(id) {
      const task = await taskById(store.db, { scope: 'every-account', id })
      if (task === undefined) throw new Error(`there is no task ${id}`)
      return task
    },
    async pass(passing) {
      clock.advance(passing)
      while ((await tasks.turn()) > 0) await tasks.idle()
    },
    node,
    async close() {
      for (const one of opened) await one.close()
    },
  }
}

export const dollars = (count: bigint) => count * 1_000_000_000n

export const requestsOf = (store: Store) => store.db.selectFrom('request').selectAll().execute()
export const attemptsOf = (store: Store) => store.db.selectFrom('attempt').selectAll().orderBy('created_at').execute()
export const eventsOf = (store: Store) => store.db.selectFrom('webhook_event').selectAll().execute()
export const usedOf = (store: Store) => store.db.selectFrom('usage_day').selectAll().execute()

export async function moneyOf(store: Store) {
  const account = store.db.selectFrom('account').select(['posted', 'held']).where('id', '=', accountId)
  return account.executeTakeFirstOrThrow()
}

export type Begun = { readonly store: Store; readonly vendor: VideoVendor; readonly world: TaskWorld }

/** On both engines: one account with a hundred dollars, one vendor, one node. The books must balance at the end. */
export function taskSuite(
  name: string,
  define: (suite: {
    readonly begin: (overrides?: TaskOverrides, channels?: readonly string[]) => Promise<Begun>
    readonly within: (work: (begun: Begun) => Promise<void>) => Promise<void>
  }) => void,
): void {
  eachEngine(name, (open) => {
    const begin = async (overrides: TaskOverrides = {}, channels: readonly string[] = ['first']) => {
      const store = await open()
      await fundedAccount(store, { id: accountId, amount: dollars(100n) })
      const vendor = videoVendor()
      const vendors = Object.fromEntries(channels.map((channel) => [channel, vendor]))
      return { store, vendor, world: makeTaskWorld(store, vendors, overrides) }
    }
    const within = async (work: (begun: Begun) => Promise<void>) => {
      const begun = await begin()
      try {
        await work(begun)
        expect(await checkLedger(begun.store)).toEqual([])
      } finally {
        await begun.world.close()
      }
    }
    define({ begin, within })
  })
}
