import type { GatewayError } from '../base/errors.ts'
import type { Task } from '../store/tasks.ts'
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
import { Waits } from './waits.ts'

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
  const { store } = parts
  const waits = new Waits(parts)
  const poller = new Poller(parts, ({ id }) => waits.wake(id))
  let stopped: GatewayError | undefined
  const creating = new Map<Promise<unknown>, Orderer>()

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

    wait: (task, ms, signal) => waits.wait(task, ms, signal),

    cancel: (task) => cancelTask(parts, task),

    async hint(token) {
      const id = parts.callbacks?.taskOf(token)
      if (id === undefined) return 'unknown'
      if (await hintTask(store.db, id, store.now())) poller.wake()
      return 'heard'
    },

    hurry: () => waits.hurry(),

    hurried: waits.hurried,

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
      waits.hurry()
      await Promise.allSettled(creating.keys())
      await poller.close()
      await databaseRetries.close()
    },
  }
}
