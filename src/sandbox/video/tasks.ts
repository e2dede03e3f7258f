import type { Clock, Timers } from '../../base/clock.ts'
import { type Bill, noUnits, type Units } from '../bill.ts'
import { charge } from '../charge.ts'
import type { Fields } from '../fields.ts'
import type { Journal } from '../memory/journal.ts'
import type { SandboxModel } from '../model.ts'
import { hashText } from '../seeded.ts'
import type { Steering } from '../steering.ts'
import type { Callbacks } from './callbacks.ts'
import { readStoredTask, writeStoredTask } from './stored-tasks.ts'
import type { Footage } from './mp4.ts'

/** Each protocol has its own words for these states. The last four are final. */
export type VideoState = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired'

export type Failure = { readonly code: string; readonly message: string }

/** An order that a vendor has accepted. */
export type Order<Ask> = {
  readonly ref: string | null
  readonly model: SandboxModel
  readonly steering: Steering
  /** The address at which the vendor was reached, used in the links it gives. */
  readonly origin: string
  readonly ask: Ask
  readonly clip: Footage
  /** What the video costs if it succeeds. */
  readonly units: Units
  /** A fault that the vendor only detects when the task runs. */
  readonly failure?: Failure | undefined
  readonly expiresAfterMs?: number
}

export type VideoTask<Ask> = Order<Ask> & {
  readonly id: string
  /** Different for every task. Its other ids and random numbers derive from it. */
  readonly seed: number
  readonly createdAt: number
  readonly state: VideoState
  /** `sandbox:odd-state=WORD`: shown instead of the state for a while. */
  readonly oddWord: string | undefined
  readonly startedAt: number | undefined
  readonly endedAt: number | undefined
  readonly changedAt: number
  readonly polls: number
}

/** The tasks of one protocol. */
export type VideoTasks<Ask> = {
  start(order: Order<Ask>): VideoTask<Ask>
  find(id: string): VideoTask<Ask> | undefined
  /** Finds the task and counts the poll. */
  poll(id: string): VideoTask<Ask> | undefined
  /** Newest first. */
  list(): VideoTask<Ask>[]
  /** Cancels a task that is still queued. False if it is not. */
  cancel(task: VideoTask<Ask>): boolean
  /** The same for vendors that can also stop a running task. */
  stop(task: VideoTask<Ask>): boolean
  forget(task: VideoTask<Ask>): void
}

/**
 * Names the tasks of one protocol and says how long they are remembered. Its type parameter is what their orders hold.
 */
export type TaskFamily<Ask> = {
  readonly name: string
  readonly keptMs: number
  writeId(seed: number, createdAt: number): string
  /** Posts every change of state, the first one included, to the callback URL of the request. */
  tell?(task: VideoTask<Ask>, callbacks: Callbacks): void
  /** What may be written to disk: nothing that a customer wrote. */
  withoutWords(ask: Ask): Ask
  /** Never set. It only ties the type of the tasks to the family. */
  readonly asks?: Ask
}

/** An id of digits. It is a string, because it has more of them than a JSON number holds. */
export function writeDigits(seed: number, createdAt: number): string {
  return `${createdAt}${String(seed).padStart(10, '0')}`.slice(0, 18)
}

export type Videos = {
  readonly callbacks: Callbacks
  readonly clock: Clock
  of<Ask>(family: TaskFamily<Ask>): VideoTasks<Ask>
  stop(): void
}

type VideoParts = {
  readonly clock: Clock
  readonly timers: Timers
  readonly bill: Bill
  readonly callbacks: Callbacks
  readonly kept?: KeptVideos | undefined
}

/**
 * The journal that keeps tasks across restarts, the videos it held at the start, and the simulators' current address.
 */
export type KeptVideos = {
  readonly journal: Journal
  readonly videos: ReadonlyMap<string, ReadonlyMap<string, Fields>>
  readonly origin: string
}

/** All asynchronous videos. They outlive a change of the models on sale. */
export function createVideos(parts: VideoParts): Videos {
  const families = new Map<string, unknown>()
  const running = new Set<() => void>()
  return {
    callbacks: parts.callbacks,
    clock: parts.clock,
    of<Ask>(family: TaskFamily<Ask>): VideoTasks<Ask> {
      const known = families.get(family.name) ?? createTasks(parts, family, running)
      families.set(family.name, known)
      // A name identifies one family, and the family determines the type of its tasks.
      return known as VideoTasks<Ask>
    },
    stop() {
      for (const callOff of running) callOff()
      parts.callbacks.stop()
    },
  }
}

// At a few hundred bytes each, a long load test stays within a few hundred megabytes.
const tasksMax = 200_000

// Fast enough for tests, slow enough for a poll to see the states in between.
const queuedMsUsual = 50
const runningMsUsual = 150

export type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

function createTasks<Ask>(
  { clock, timers, bill, callbacks, kept }: VideoParts,
  family: TaskFamily<Ask>,
  running: Set<() => void>,
): VideoTasks<Ask> {
  type Task = Writable<VideoTask<Ask>>
  const tasks = new Map<string, Task>()
  const callOffs = new WeakMap<object, () => void>()
  let sequence = 0

  /** Vendors' ids are short, so under load two seeds may give the same id. */
  function newId(createdAt: number): { id: string; seed: number } {
    for (;;) {
      sequence += 1
      const seed = hashText(`${createdAt} ${sequence}`)
      const id = family.writeId(seed, createdAt)
      if (!tasks.has(id)) return { id, seed }
    }
  }
  function change(task: Task, facts: Partial<Task>): void {
    Object.assign(task, facts, { changedAt: clock.now() })
    keep(task)
    family.tell?.(task, callbacks)
  }
  function keep(task: Task): void {
    kept?.journal.append({ family: family.name, film: writeStoredTask(task, family, kept.origin) })
  }
  /** A task has one timer at a time, plus one for its expiry. Calling off the task calls off both. */
  function later(task: Task, ms: number, run: () => void): void {
    const callOffTimer = timers.after(ms, run)
    const before = callOffs.get(task)
    const callOff = (): void => {
      callOffTimer()
      before?.()
    }
    if (before) running.delete(before)
    running.add(callOff)
    callOffs.set(task, callOff)
  }
  function end(task: Task, state: VideoState): void {
    const callOff = callOffs.get(task)
    callOff?.()
    if (callOff) running.delete(callOff)
    // The bill comes first, because a client that sees the end may read the bill at once.
    const status = task.steering.number('charge-then-fail') ?? 200
    const isPaid = state === 'succeeded' && !task.steering.has('zero')
    charge(task, { bill }, task, status, isPaid ? task.units : noUnits)
    change(task, { state, endedAt: clock.now(), oddWord: undefined })
  }
  function run(task: Task): void {
    const startedAt = clock.now()
    change(task, { state: 'running', startedAt, oddWord: task.steering.text('odd-state') })
    goOn(task, startedAt)
  }
  /** Sets the timers of a running task, counted from when it began to run. */
  function goOn(task: Task, startedAt: number): void {
    const { steering } = task
    const ms = steering.number('slow') ?? runningMsUsual
    // The odd state is shown first, for as long as the running state that follows it.
    if (task.oddWord !== undefined) later(task, left(startedAt, ms), () => change(task, { oddWord: undefined }))
    if (steering.has('stuck')) return
    const allMs = steering.text('odd-state') === undefined ? ms : 2 * ms
    later(task, left(startedAt, allMs), () => end(task, task.failure ? 'failed' : 'succeeded'))
  }
  /** Sets the timers of a task, also of one that began in another process. */
  function wind(task: Task): void {
    const { steering, createdAt, startedAt, expiresAfterMs } = task
    // A vanished task never runs.
    if (task.endedAt !== undefined || steering.has('vanish')) return
    if (startedAt === undefined) {
      later(task, left(createdAt, steering.number('queued') ?? queuedMsUsual), () => run(task))
    } else goOn(task, startedAt)
    if (expiresAfterMs !== undefined) later(task, left(createdAt, expiresAfterMs), () => end(task, 'expired'))
  }
  function left(since: number, ms: number): number {
    return Math.max(0, since + ms - clock.now())
  }
  function remembers(task: Task): boolean {
    return !task.steering.has('vanish') && clock.now() - (task.endedAt ?? task.createdAt) < family.keptMs
  }
  function find(id: string): Task | undefined {
    const task = tasks.get(id)
    return task && remembers(task) ? task : undefined
  }
  for (const video of kept?.videos.get(family.name)?.values() ?? []) {
    const task = readStoredTask<Ask>(video, kept?.origin ?? '')
    if (task === undefined) continue
    tasks.set(task.id, task)
    wind(task)
  }
  return {
    start(order) {
      const createdAt = clock.now()
      const { id, seed } = newId(createdAt)
      const task: Task = {
        ...order,
        id,
        seed,
        createdAt,
        changedAt: createdAt,
        state: 'queued',
        oddWord: undefined,
        startedAt: undefined,
        endedAt: undefined,
        polls: 0,
      }
      tasks.set(task.id, task)
      const [oldest] = tasks.size > tasksMax ? tasks.keys() : []
      if (oldest !== undefined) tasks.delete(oldest)
      // A vanished task never runs, so it costs nothing.
      if (order.steering.has('vanish')) charge(task, { bill }, task, 200, noUnits)
      else {
        keep(task)
        family.tell?.(task, callbacks)
        wind(task)
      }
      return task
    },
    find,
    poll(id) {
      const task = find(id)
      if (task) task.polls += 1
      return task
    },
    list: () => [...tasks.values()].filter(remembers).toReversed(),
    cancel(task) {
      if (task.state !== 'queued') return false
      end(task, 'cancelled')
      return true
    },
    stop(task) {
      if (task.endedAt !== undefined) return false
      end(task, 'cancelled')
      return true
    },
    forget: (task) => {
      tasks.delete(task.id)
      kept?.journal.append({ family: family.name, forgotten: task.id })
    },
  }
}
