import type { Clock, Timers } from '../../base/clock.ts'
import type { Bill, Units } from '../bill.ts'
import type { Fields } from '../fields.ts'
import type { Journal } from '../memory/journal.ts'
import type { SandboxModel } from '../model.ts'
import type { Steering } from '../steering.ts'
import type { Callbacks } from './callbacks.ts'
import { FamilyTasks } from './family-tasks.ts'
import type { Footage } from './mp4.ts'
import { TaskTimers } from './task-timers.ts'

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

export type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

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
  readonly clock: Clock
  of<Ask>(family: TaskFamily<Ask>): VideoTasks<Ask>
  stop(): void
}

export type VideoParts = {
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
  const timers = new TaskTimers(parts.timers)
  return {
    clock: parts.clock,
    of<Ask>(family: TaskFamily<Ask>): VideoTasks<Ask> {
      const known = families.get(family.name) ?? new FamilyTasks(parts, family, timers)
      families.set(family.name, known)
      // A name identifies one family, and the family determines the type of its tasks.
      return known as VideoTasks<Ask>
    },
    stop() {
      timers.stop()
      parts.callbacks.stop()
    },
  }
}
