import type { GatewayError } from '../base/errors.ts'
import { isUnavailable } from '../store/faults.ts'
import { type Task, taskById } from '../store/tasks.ts'
import { hintTask } from '../store/task-claims.ts'
import { Tally } from '../telemetry/tally.ts'
import { cancelTask } from './cancel.ts'
import { createTask, type Placed, type VideoOrder } from './create.ts'
import { makeInsistence, type Patience, usualPatience } from './insist.ts'
import { countOddWords } from './odd-words.ts'
import { Orderer } from './orderer.ts'
import { Allowances, StoreRest } from './pace.ts'
import { type OddWords, type TaskParts, turnsByChannel } from './parts.ts'
import { startPoller } from './poller.ts'
import { isOver } from './state.ts'

/** Asynchronous video: made, watched to its end, and paid for there. */
export type Tasks = {
  /** Throws what the client is to be told where the vendor would not have it. */
  create(order: VideoOrder): Promise<Placed>
  /** The task once it is over, or as it was last known when the time is. */
  wait(task: Task, ms: number, signal: AbortSignal): Promise<Task>
  cancel(task: Task): Promise<Task>
  /** A vendor says that there is news. Whatever else it says is not believed. */
  hint(token: string): Promise<'heard' | 'unknown'>
  /** Nobody is let wait any longer: the node is about to stop, and the tasks go on without it. */
  hurry(): void
  /** Aborts then, for who waits for the end of a task without `wait`. */
  readonly hurried: AbortSignal
  /**
   * The ports are about to be cut: whoever waits for a vendor to take an order has it as it is on record, and what is not
   * on record is refused for this reason. The vendor's answer is waited for until `close`.
   */
  stop(reason: GatewayError): void
  /** Takes what is due now; the looks go on behind it. For tests, which move the clock by hand. */
  turn(): Promise<number>
  /** Resolves when no look and no creation is under way. */
  idle(): Promise<void>
  /** What this node was told that it does not understand. */
  readonly oddWords: Pick<OddWords, 'of'>
  close(): Promise<void>
}

// Another node may see the end: nobody tells us, so we look.
const waitPollMs = 1_000
// At one channel.
const keepingMax = 2

type Own = 'keeping' | 'stopping' | 'allowances' | 'storeRest' | 'insist' | 'oddWords'

type Given = Omit<TaskParts, Own | 'tally'> & {
  readonly patience?: Patience
  readonly tally?: Tally
}

export function openTasks({ patience = usualPatience, tally = new Tally(), ...given }: Given): Tasks {
  const stopping = new AbortController()
  const insistence = makeInsistence({ log: given.log, clock: given.clock, patience })
  const parts: TaskParts = {
    ...given,
    keeping: turnsByChannel(keepingMax),
    allowances: new Allowances(given.clock),
    storeRest: new StoreRest(given.clock),
    insist: insistence.insist,
    stopping: stopping.signal,
    oddWords: countOddWords(),
    tally,
  }
  const { store, clock } = parts
  const waiters = new Map<string, Set<() => void>>()
  const hurried = new AbortController()
  let stopped: GatewayError | undefined
  const creating = new Map<Promise<unknown>, Orderer>()

  const poller = startPoller(parts, ({ id }) => {
    for (const wake of waiters.get(id) ?? []) wake()
  })

  /** Until somebody here sees the end of a task, or the time is over. */
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

  /** Whoever ordered a task has it, whether or not the database can say how far it is. */
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

    oddWords: parts.oddWords,

    turn: () => poller.turn(),

    async idle() {
      await Promise.allSettled(creating.keys())
      await poller.idle()
    },

    async close() {
      // Questions end here. A creation does not: its vendor may have begun, and then nobody would know under which id.
      stopping.abort()
      hurry()
      await Promise.allSettled(creating.keys())
      await poller.close()
      await insistence.close()
    },
  }
}
