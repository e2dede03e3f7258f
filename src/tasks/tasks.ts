import type { GatewayError } from '../base/errors.ts'
import { isUnavailable } from '../store/faults.ts'
import { type Task, taskById } from '../store/tasks.ts'
import { hintTask } from '../store/task-claims.ts'
import { Tally } from '../telemetry/tally.ts'
import { cancelTask } from './cancel.ts'
import { limitConcurrencyByChannel } from './concurrency.ts'
import { createTask, type Placed, type VideoOrder } from './create.ts'
import { makeDatabaseRetries, type Patience, usualPatience } from './database-retries.ts'
import { countUnknownStates } from './unknown-states.ts'
import { Orderer } from './orderer.ts'
import { Allowances, StoreRest } from './pace.ts'
import type { TaskParts, UnknownStates } from './parts.ts'
import { Poller } from './poller.ts'
import { isOver } from './state.ts'

/** Asynchronous video tasks: created, polled to their end, and paid for there. */
export type Tasks = {
  /** Throws the error for the client where the vendor refuses the order. */
  create(order: VideoOrder): Promise<Placed>
  /** The task once it is over, or as it was last known when the time has run out. */
  wait(task: Task, ms: number, signal: AbortSignal): Promise<Task>
  cancel(task: Task): Promise<Task>
  /** A vendor's callback says that there is news. Nothing else in it is believed: the vendor is polled instead. */
  hint(token: string): Promise<'heard' | 'unknown'>
  /** Ends every `wait`, because the node is about to stop. The tasks go on without it. */
  hurry(): void
  /** Aborts on `hurry`, for code that waits for the end of a task without `wait`. */
  readonly hurried: AbortSignal
  /**
   * Clients' connections are about to be cut: a client that waits for a vendor to take its order gets the task as it is
   * on record, and an order that is not on record yet is refused with this reason. `close` still awaits the vendor.
   */
  stop(reason: GatewayError): void
  /** Starts the polls that are due now and does not wait for them. For tests, which move the clock by hand. */
  turn(): Promise<number>
  /** Resolves when no poll and no creation is under way. */
  idle(): Promise<void>
  /** Vendors' status words that this node did not understand. */
  readonly unknownStates: Pick<UnknownStates, 'of'>
  close(): Promise<void>
}

// Another node may see a task's end and does not notify this one, so a waiting request rereads the task this often.
const waitPollMs = 1_000
// Videos fetched at once from one channel.
const keepingMax = 2

type Own = 'keeping' | 'stopping' | 'allowances' | 'storeRest' | 'withDatabaseRetries' | 'unknownStates'

type Given = Omit<TaskParts, Own | 'tally'> & {
  readonly patience?: Patience
  readonly tally?: Tally
}

export function openTasks({ patience = usualPatience, tally = new Tally(), ...given }: Given): Tasks {
  const stopping = new AbortController()
  const databaseRetries = makeDatabaseRetries({ log: given.log, clock: given.clock, patience })
  const parts: TaskParts = {
    ...given,
    keeping: limitConcurrencyByChannel(keepingMax),
    allowances: new Allowances(given.clock),
    storeRest: new StoreRest(given.clock),
    withDatabaseRetries: databaseRetries.withDatabaseRetries,
    stopping: stopping.signal,
    unknownStates: countUnknownStates(),
    tally,
  }
  const { store, clock } = parts
  const waiters = new Map<string, Set<() => void>>()
  const hurried = new AbortController()
  let stopped: GatewayError | undefined
  const creating = new Map<Promise<unknown>, Orderer>()

  const poller = new Poller(parts, ({ id }) => {
    for (const wake of waiters.get(id) ?? []) wake()
  })

  /** Resolves when this node sees the end of the task, when the time is over, or on abort. */
  async function pause(id: string, ms: number, signal: AbortSignal): Promise<void> {
    const wakes = waiters.get(id) ?? new Set()
    waiters.set(id, wakes)
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', wake)
        wakes.delete(wake)
        if (wakes.size === 0) waiters.delete(id)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      signal.addEventListener('abort', wake, { once: true })
      wakes.add(wake)
    })
  }

  /** Rereads a task. Undefined while the database is unavailable, which must not fail the client's wait. */
  async function again({ accountId, id }: Task): Promise<Task | undefined> {
    try {
      return await taskById(store.db, { scope: { accountId }, id })
    } catch (thrown) {
      if (isUnavailable(thrown)) return undefined
      throw thrown
    }
  }

  function hurry(): void {
    hurried.abort()
    for (const wakes of waiters.values()) for (const wake of wakes) wake()
  }

  return {
    create(order) {
      const orderer = new Orderer()
      const told = orderer.told.then((task) => ({ kind: 'placed', task }) as const)
      if (stopped !== undefined) orderer.dismiss(stopped)
      const created = createTask(parts, order, orderer).finally(() => {
        creating.delete(created)
        poller.attend()
      })
      creating.set(created, orderer)
      return Promise.race([created, told])
    },

    async wait(task, ms, signal) {
      const endsAt = clock.monotonic() + ms
      let current = task
      for (;;) {
        const left = endsAt - clock.monotonic()
        if (isOver(current.state) || left <= 0 || signal.aborted || hurried.signal.aborted) return current
        await pause(task.id, Math.min(left, waitPollMs), signal)
        current = (await again(current)) ?? current
      }
    },

    cancel: (task) => cancelTask(parts, task),

    async hint(token) {
      const id = parts.callbacks?.taskOf(token)
      if (id === undefined) return 'unknown'
      if (await hintTask(store.db, id, store.now())) poller.wake()
      return 'heard'
    },

    hurry,

    hurried: hurried.signal,

    stop(reason) {
      stopped = reason
      for (const orderer of creating.values()) orderer.dismiss(reason)
    },

    unknownStates: parts.unknownStates,

    turn: () => poller.turn(),

    async idle() {
      await Promise.allSettled(creating.keys())
      await poller.idle()
    },

    async close() {
      // Polls are cut off here. A creation is not: its vendor may have begun, and the task's id would be lost.
      stopping.abort()
      hurry()
      await Promise.allSettled(creating.keys())
      await poller.close()
      await databaseRetries.close()
    },
  }
}
