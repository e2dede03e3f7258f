import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemTimers, type Clock } from './base/clock.ts'
import { Closing, type Opening } from './base/closing.ts'
import type { Log } from './base/log.ts'
import { pause } from './base/pause.ts'
import { within } from './base/within.ts'
import { capSpending, type CappedBilling } from './billing/caps.ts'
import type { Billing } from './billing/billing.ts'
import { makeStoreBank, type Bank } from './billing/leased/bank.ts'
import { openDisk } from './billing/leased/disk.ts'
import { openLeasedBilling, type LeasedBilling } from './billing/leased/leased.ts'
import { startWorkerBank } from './billing/leased/worker-bank.ts'
import { trackOpenHolds, type TrackedBilling } from './billing/open-holds.ts'
import { makeStrictBilling } from './billing/strict.ts'
import { databaseFile, type Environment } from './config/environment.ts'
import { keepAnswersMs } from './idempotency/idempotency.ts'
import { nodeIdentity } from './config/node-identity.ts'
import type { FileSettings } from './config/schema.ts'
import { isAway } from './store/faults.ts'
import { closeAbandoned } from './store/idempotency.ts'
import { hasLeases } from './store/leases.ts'
import { recoverAll } from './store/ledger.ts'
import { cannotOpen, openStore, type Store, type StoreOptions } from './store/open.ts'
import { claimSingleNode } from './store/single-node.ts'
import { heldByTasks } from './store/task-lists.ts'
import { startTidying } from './store/tidying.ts'
import { spentSince } from './store/usage.ts'
import type { Tally } from './telemetry/tally.ts'

/** The database and the way money is booked in it, as the settings ask. */
export type Books = {
  readonly store: Store
  readonly billing: TrackedBilling
  /** How many requests have ended that the database does not know of yet. */
  readonly unposted: () => number
  /** Counts what tasks hold against spending caps. */
  readonly reserve: CappedBilling['reserve']
  readonly heldHere: CappedBilling['heldHere']
  /** Why nothing can be admitted now, if so. */
  trouble(): string | undefined
  /** Brings the database up to date with all that has been charged, and gives back leases that are not in use. */
  readonly post: () => Promise<void>
  /**
   * Call before a balance or a report is read. Posts what has been charged so far, and gives back what these accounts'
   * leases on this node do not use, so that `held` is what requests hold and not what a node keeps ready. Leases on
   * other nodes count as held until those give them back, two seconds after the last request. Waits a second at most.
   */
  readonly bringUpToDate: (accountIds: readonly string[]) => Promise<void>
  /** Asks every node to give back what it has leased of this account and does not use: here at once, elsewhere soon. */
  readonly recall: (accountId: string) => Promise<void>
}

export type BooksOptions = {
  readonly environment: Environment
  readonly settings: Pick<FileSettings, 'billing'>
  readonly clock: Clock
  readonly log: Log
  readonly tally: Pick<Tally, 'ended'>
  /** Called when this process must not go on. */
  readonly fatal: (why: string, cause: unknown) => void
  /** Replaces the billing that the settings ask for: the bench counts in memory. */
  readonly billing?: ((books: { store: Store; node: string; log: Log }) => Billing) | undefined
  /** How long to wait for PostgreSQL, for tests, which ask what becomes of a request and not how soon. */
  readonly waitMs?: number
  readonly closing: Opening<'tidying' | 'billing' | 'store' | 'lock'>
}

const reconnectMs = 500
const closeMsMax = 5_000
const upToDateMsMax = 1_000
// A machine with a time server is right to a fraction of a second, and what a node claims stays its own for a minute.
const aheadMsMax = 10_000

/** Books whose database is open, while their bank may still be starting. */
export type OpeningBooks = {
  readonly store: Store
  readonly node: string
  /** Resolves once money can be booked. */
  finish(): Promise<Books>
}

/**
 * Waits for a database that does not answer yet; throws for one that it cannot use. Does not wait for the bank: its
 * thread takes 70 ms to start, in which the caller may do what needs the database alone.
 */
export async function openBooks(options: BooksOptions): Promise<OpeningBooks> {
  const { environment, clock, log, closing } = options
  const { dataFolder, databaseUrl } = environment
  const patience = options.waitMs !== undefined && { waitMs: options.waitMs }
  // A journal, and a SQLite file, belong to one process at a time.
  const lock = claimSingleNode(dataFolder)
  closing.opened('lock', () => lock.release())
  const node = nodeIdentity(dataFolder)
  const opening = openPatiently(
    databaseUrl === undefined ? { file: databaseFile(environment), clock } : { url: databaseUrl, ...patience },
    log,
  )
  const billing = new Closing<BillingStep>(['endings', 'bank'])
  // A database that is away must not keep a process from ending: what is owed is in the journal.
  closing.opened('billing', async () => {
    await within(closeMsMax, billing.close())
  })
  const bank = isLeased(options) ? startBank(environment, opening, billing) : undefined
  const store = await opening
  closing.opened('store', () => store.close())
  // On SQLite there is one node: every hold that is open at its start is an orphan of the last process.
  if (databaseUrl === undefined) {
    const { failed } = await recoverAll(store)
    if (failed.length > 0)
      log.error({ cause: failed.join('; ') }, 'holds left by the last process could not be released')
  } else compareClocks(store, options)
  return { store, node, finish: () => openWhole({ ...options, store, node, bank, closingBilling: billing }) }
}

/** Warns where clocks differ: rows go by the database's, times in answers and expiries of keys and links by ours. */
function compareClocks(store: Store, { clock, log }: BooksOptions): void {
  const aheadMs = clock.now() - store.now()
  if (Math.abs(aheadMs) <= aheadMsMax) return
  log.warn({ aheadSeconds: Math.round(aheadMs / 1000) }, "this machine's clock differs from that of the database")
}

type BillingStep = 'endings' | 'bank'

type OpenStore = BooksOptions & {
  readonly store: Store
  readonly node: string
  /** Present where billing is leased. */
  readonly bank: StartingBank | undefined
  readonly closingBilling: Opening<BillingStep>
}

type StartingBank = (store: Store) => Promise<Bank>

async function openWhole(options: OpenStore): Promise<Books> {
  const { store, node, clock } = options
  const opened = await openBilling(options)
  const billing = capSpending(opened.billing, {
    clock,
    spentSince: (by) => spentSince(store.db, by),
    heldByTasks: (by) => heldByTasks(store.db, by),
  })
  await closeAbandoned(store, node, opened.reachedVendors)

  const isAtWork = (holdId: string) => opened.billing.isAtWork?.(holdId) ?? false
  const stopTidying = startTidying({ store, timers: systemTimers, log: options.log, keepAnswersMs, isAtWork })
  options.closing.opened('tidying', stopTidying)
  return {
    store,
    billing: trackOpenHolds(billing, options.tally),
    unposted() {
      const { made, booked } = opened.billing.endings ?? { made: 0, booked: 0 }
      return made - booked
    },
    reserve: (order) => billing.reserve(order),
    heldHere: (of) => billing.heldHere(of),
    trouble: opened.trouble,
    post: opened.post,
    async bringUpToDate(accountIds) {
      await within(upToDateMsMax, opened.bringUpToDate(accountIds))
    },
    async recall(accountId) {
      await opened.recall(accountId).catch(() => {}) // where it cannot be sent, the leases end by themselves
      await within(upToDateMsMax, opened.bringUpToDate([accountId]))
    },
  }
}

type OpenedBilling = {
  readonly billing: Billing
  /** Requests of the last process that vendors may have charged for; `all` where that is not known. */
  readonly reachedVendors: readonly string[] | 'all'
  readonly trouble: () => string | undefined
  readonly post: () => Promise<void>
  readonly bringUpToDate: (accountIds: readonly string[]) => Promise<void>
  readonly recall: (accountId: string) => Promise<void>
}

/** For billing that books every charge as it is made, or as soon as the database is back. */
const atOnce = {
  reachedVendors: 'all',
  trouble: () => undefined,
  recall: () => Promise.resolve(),
} as const satisfies Partial<OpenedBilling>

function isLeased({ settings, billing }: BooksOptions): boolean {
  return billing === undefined && settings.billing.mode === 'leased'
}

/** On SQLite the bank has a thread and a connection of its own, so that it can start beside everything else. */
function startBank(environment: Environment, store: Promise<Store>, closing: Opening<BillingStep>): StartingBank {
  const { databaseUrl } = environment
  if (databaseUrl === undefined) {
    const thread = startWorkerBank(databaseFile(environment), store)
    thread.catch(() => {}) // a failure is reported where the thread is awaited
    // A thread that could not start has ended by itself.
    closing.opened('bank', async () => (await thread.catch(() => undefined))?.close())
    return () => thread
  }
  return async (store) => {
    const bank = await openSharedBank(store, databaseUrl)
    closing.opened('bank', () => bank.close())
    return bank
  }
}

/** Loaded only where PostgreSQL is used, like everything that speaks to it. */
async function openSharedBank(store: Store, url: string): Promise<Bank> {
  const { makeSharedBank } = await import('./billing/leased/shared-bank.ts')
  return makeSharedBank(store, url)
}

async function openBilling(options: OpenStore): Promise<OpenedBilling> {
  const { store, node, log } = options
  if (options.bank === undefined) {
    await settleJournal(options)
    const billing = options.billing?.({ store, node, log }) ?? makeStrictBilling(options)
    options.closingBilling.opened('endings', () => billing.close?.())
    const post = async () => billing.post?.()
    return { ...atOnce, billing, post, bringUpToDate: post }
  }
  const bank = await options.bank(store)
  const leased = await openLeased(options, bank)
  options.closingBilling.opened('endings', () => leased.close())
  return {
    billing: leased,
    reachedVendors: leased.reachedVendors,
    trouble: () => (leased.ready ? undefined : 'nothing new can be recorded'),
    post: () => leased.post(),
    bringUpToDate: (accountIds) => leased.bringUpToDate(accountIds),
    recall: async (accountId) => bank.recall?.(accountId),
  }
}

function openLeased(options: OpenStore, bank: Bank): Promise<LeasedBilling> {
  const { environment, settings, node, log, clock, fatal } = options
  const disk = openDisk(journalFolder(environment))
  const { sync } = settings.billing
  return openLeasedBilling({ node, bank, disk, clock, timers: systemTimers, log, sync, fatal })
}

/**
 * If billing was leased before and was not stopped cleanly, its journal has charges that no other start would post. If
 * the journal is gone, as from a restored copy, no other start would give its leases back.
 */
async function settleJournal(options: OpenStore): Promise<void> {
  const folder = journalFolder(options.environment)
  const hasJournal = existsSync(folder) && openDisk(folder).list().length > 0
  if (!hasJournal && !(await hasLeases(options.store.db, options.node))) return
  const leased = await openLeased(options, makeStoreBank(options.store))
  await leased.close()
}

function journalFolder({ dataFolder }: Environment): string {
  return join(dataFolder, 'journal')
}

/** Also pings, because a migrated database opens even where it cannot be written. */
async function openWritable(where: StoreOptions): Promise<Store> {
  const store = await openStore(where)
  try {
    await store.ping()
    return store
  } catch (thrown) {
    await store.close()
    throw thrown
  }
}

/** Waits for a database that is not up yet; throws for anything else that is wrong with it. */
async function openPatiently(where: StoreOptions, log: Log): Promise<Store> {
  for (let tries = 0; ; tries++) {
    try {
      return await openWritable(where)
    } catch (thrown) {
      if (where.url === undefined || !isAway(thrown)) throw cannotOpen(where, thrown)
      if (tries === 0) log.warn({ cause: String(thrown) }, 'the database does not answer yet; waiting for it')
      await pause(reconnectMs)
    }
  }
}
