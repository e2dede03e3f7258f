import type { Clock, Timers } from '../../base/clock.ts'
import { type Bill, noUnits, type Units } from '../bill.ts'
import { charge } from '../charge.ts'
import type { Fields } from '../fields.ts'
import type { Journal } from '../memory/journal.ts'
import type { SandboxModel } from '../model.ts'
import { hashText } from '../seeded.ts'
import type { Steering } from '../steering.ts'
import type { Callbacks } from './callbacks.ts'
import { readFilm, writeFilm } from './films.ts'
import type { Footage } from './mp4.ts'

/** Each protocol has its own words for these; an end is an end. */
export type VideoState = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired'

export type Failure = { readonly code: string; readonly message: string }

/** What a vendor has accepted. */
export type Order<Ask> = {
  readonly ref: string | null
  readonly model: SandboxModel
  readonly steering: Steering
  /** Where the vendor was reached, for the links it gives. */
  readonly origin: string
  readonly ask: Ask
  readonly clip: Footage
  /** What it costs if it succeeds. */
  readonly units: Units
  /** What the vendor finds wrong only once it runs. */
  readonly failure?: Failure | undefined
  readonly expiresAfterMs?: number
}

export type VideoTask<Ask> = Order<Ask> & {
  readonly id: string
  /** Different for every task: what its other ids and random numbers are made of. */
  readonly seed: number
  readonly createdAt: number
  readonly state: VideoState
  /** `sandbox:odd-state=WORD`: shown in the place of the state for a while. */
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
  /** Finds it and counts that somebody asked. */
  poll(id: string): VideoTask<Ask> | undefined
  /** Newest first. */
  list(): VideoTask<Ask>[]
  /** True where it was still queued, and now is cancelled. */
  cancel(task: VideoTask<Ask>): boolean
  /** The same for vendors that also stop what runs. */
  stop(task: VideoTask<Ask>): boolean
  forget(task: VideoTask<Ask>): void
}

/** Names the tasks of one protocol, says how long they are remembered, and by its type what they hold. */
export type TaskFamily<Ask> = {
  readonly name: string
  readonly keptMs: number
  writeId(seed: number, createdAt: number): string
  /** Tells whoever asked for it of every change of state, the first one included. */
  tell?(task: VideoTask<Ask>, callbacks: Callbacks): void
  /** What is written to a disk: nothing that a customer said. */
  withoutWords(ask: Ask): Ask
  /** Never there: it only ties the type of the tasks to the family. */
  readonly asks?: Ask
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

/** Where tasks outlive the process, what stood there at its start, and the address that the simulators have now. */
export type KeptVideos = {
  readonly journal: Journal
  readonly films: ReadonlyMap<string, ReadonlyMap<string, Fields>>
  readonly origin: string
}

/** All asynchronous video: memory that outlives a change of the models on sale. */
export function createVideos(parts: VideoParts): Videos {
  const families = new Map<string, unknown>()
  const running = new Set<() => void>()
  return {
    callbacks: parts.callbacks,
    clock: parts.clock,
    of<Ask>(family: TaskFamily<Ask>): VideoTasks<Ask> {
      const known = families.get(family.name) ?? createTasks(parts, family, running)
      families.set(family.name, known)
      // A name stands for one family, and the family for the type of what it holds.
      return known as VideoTasks<Ask>
    },
    stop() {
      for (const callOff of running) callOff()
      parts.callbacks.stop()
    },
  }
}

// A few hundred bytes each: a long load test stays within a few hundred megabytes.
const tasksMax = 200_000

// Quick enough for tests, slow enough to be seen on the way.
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

  /** Vendors' ids are short: under load two seeds may write the same one. */
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
    kept?.journal.append({ family: family.name, film: writeFilm(task, family, kept.origin) })
  }
  /** One timer at a time belongs to a task, and one to its expiry. */
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
    // The bill first: whoever sees the end may read it.
    const status = task.steering.number('charge-then-fail') ?? 200
    charge(task, { bill }, task, status, state === 'succeeded' ? task.units : noUnits)
    change(task, { state, endedAt: clock.now(), oddWord: undefined })
  }
  function run(task: Task): void {
    const startedAt = clock.now()
    change(task, { state: 'running', startedAt, oddWord: task.steering.text('odd-state') })
    goOn(task, startedAt)
  }
  /** What is to come of a task that runs, counted from when it began to. */
  function goOn(task: Task, startedAt: number): void {
    const { steering } = task
    const ms = steering.number('slow') ?? runningMsUsual
    // An odd state lasts as long as the running that follows it.
    if (task.oddWord !== undefined) later(task, left(startedAt, ms), () => change(task, { oddWord: undefined }))
    if (steering.has('stuck')) return
    const allMs = steering.text('odd-state') === undefined ? ms : 2 * ms
    later(task, left(startedAt, allMs), () => end(task, task.failure ? 'failed' : 'succeeded'))
  }
  /** Sets the clock for a task, also for one that was begun in another process. */
  function wind(task: Task): void {
    const { steering, createdAt, startedAt, expiresAfterMs } = task
    // What vanishes is never made.
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
  for (const film of kept?.films.get(family.name)?.values() ?? []) {
    const task = readFilm<Ask>(film, kept?.origin ?? '')
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
      // What vanishes is never made, so it costs nothing.
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
