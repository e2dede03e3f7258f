import { noUnits } from '../bill.ts'
import { charge } from '../charge.ts'
import { hashText } from '../seeded.ts'
import { readStoredTask, writeStoredTask } from './stored-tasks.ts'
import type { TaskTimers } from './task-timers.ts'
import type { Order, TaskFamily, VideoParts, VideoState, VideoTask, VideoTasks, Writable } from './tasks.ts'

// At a few hundred bytes each, a long load test stays within a few hundred megabytes.
const tasksMax = 200_000

// Fast enough for tests, slow enough for a poll to see the states in between.
const queuedMsUsual = 50
const runningMsUsual = 150

type Task<Ask> = Writable<VideoTask<Ask>>

/** Each task goes through its states by timers, from its order to its end. */
export class FamilyTasks<Ask> implements VideoTasks<Ask> {
  readonly #parts: Omit<VideoParts, 'timers'>
  readonly #family: TaskFamily<Ask>
  readonly #timers: TaskTimers
  readonly #tasks = new Map<string, Task<Ask>>()
  #sequence = 0

  constructor(parts: Omit<VideoParts, 'timers'>, family: TaskFamily<Ask>, timers: TaskTimers) {
    const { kept } = parts
    this.#parts = parts
    this.#family = family
    this.#timers = timers
    for (const video of kept?.videos.get(family.name)?.values() ?? []) {
      const task = readStoredTask<Ask>(video, kept?.origin ?? '')
      if (task === undefined) continue
      this.#tasks.set(task.id, task)
      this.#wind(task)
    }
  }

  start(order: Order<Ask>): VideoTask<Ask> {
    const { clock, bill } = this.#parts
    const createdAt = clock.now()
    const task: Task<Ask> = {
      ...order,
      ...this.#newId(createdAt),
      createdAt,
      changedAt: createdAt,
      state: 'queued',
      oddWord: undefined,
      startedAt: undefined,
      endedAt: undefined,
      polls: 0,
    }
    this.#tasks.set(task.id, task)
    const [oldest] = this.#tasks.size > tasksMax ? this.#tasks.keys() : []
    if (oldest !== undefined) this.#tasks.delete(oldest)
    // A vanished task never runs, so it costs nothing.
    if (order.steering.has('vanish')) charge(task, { bill }, task, 200, noUnits)
    else {
      this.#publish(task)
      this.#wind(task)
    }
    return task
  }

  find(id: string): Task<Ask> | undefined {
    const task = this.#tasks.get(id)
    return task && this.#remembers(task) ? task : undefined
  }

  poll(id: string): VideoTask<Ask> | undefined {
    const task = this.find(id)
    if (task) task.polls += 1
    return task
  }

  list(): VideoTask<Ask>[] {
    return [...this.#tasks.values()].filter((task) => this.#remembers(task)).toReversed()
  }

  cancel(task: VideoTask<Ask>): boolean {
    if (task.state !== 'queued') return false
    this.#end(task, 'cancelled')
    return true
  }

  stop(task: VideoTask<Ask>): boolean {
    if (task.endedAt !== undefined) return false
    this.#end(task, 'cancelled')
    return true
  }

  forget(task: VideoTask<Ask>): void {
    this.#tasks.delete(task.id)
    this.#parts.kept?.journal.append({ family: this.#family.name, forgotten: task.id })
  }

  /** Vendors' ids are short, so under load two seeds may give the same id. */
  #newId(createdAt: number): { id: string; seed: number } {
    for (;;) {
      this.#sequence += 1
      const seed = hashText(`${createdAt} ${this.#sequence}`)
      const id = this.#family.writeId(seed, createdAt)
      if (!this.#tasks.has(id)) return { id, seed }
    }
  }

  #remembers({ steering, createdAt, endedAt }: VideoTask<Ask>): boolean {
    return !steering.has('vanish') && this.#parts.clock.now() - (endedAt ?? createdAt) < this.#family.keptMs
  }

  /** Sets the timers of a task, also of one that began in another process. */
  #wind(task: Task<Ask>): void {
    const { steering, createdAt, startedAt, expiresAfterMs } = task
    // A vanished task never runs.
    if (task.endedAt !== undefined || steering.has('vanish')) return
    if (startedAt === undefined) {
      this.#at(task, createdAt + (steering.number('queued') ?? queuedMsUsual), () => this.#run(task))
    } else this.#goOn(task, startedAt)
    if (expiresAfterMs !== undefined) this.#at(task, createdAt + expiresAfterMs, () => this.#end(task, 'expired'))
  }

  #run(task: Task<Ask>): void {
    const startedAt = this.#parts.clock.now()
    this.#change(task, { state: 'running', startedAt, oddWord: task.steering.text('odd-state') })
    this.#goOn(task, startedAt)
  }

  /** Sets the timers of a running task, counted from when it began to run. */
  #goOn(task: Task<Ask>, startedAt: number): void {
    const { steering } = task
    const ms = steering.number('slow') ?? runningMsUsual
    // The odd state is shown first, for as long as the running state that follows it.
    if (task.oddWord !== undefined) this.#at(task, startedAt + ms, () => this.#change(task, { oddWord: undefined }))
    if (steering.has('stuck')) return
    const allMs = steering.text('odd-state') === undefined ? ms : 2 * ms
    this.#at(task, startedAt + allMs, () => this.#end(task, task.failure ? 'failed' : 'succeeded'))
  }

  #end(task: Task<Ask>, state: VideoState): void {
    const { clock, bill } = this.#parts
    this.#timers.callOff(task)
    // The bill comes first, because a client that sees the end may read the bill at once.
    const status = task.steering.number('charge-then-fail') ?? 200
    const isPaid = state === 'succeeded' && !task.steering.has('zero')
    charge(task, { bill }, task, status, isPaid ? task.units : noUnits)
    this.#change(task, { state, endedAt: clock.now(), oddWord: undefined })
  }

  #at(task: Task<Ask>, moment: number, run: () => void): void {
    this.#timers.after(task, Math.max(0, moment - this.#parts.clock.now()), run)
  }

  #change(task: Task<Ask>, facts: Partial<Task<Ask>>): void {
    Object.assign(task, facts, { changedAt: this.#parts.clock.now() })
    this.#publish(task)
  }

  /** Keeps the task as it is now, and posts it to its callback URL. */
  #publish(task: Task<Ask>): void {
    const { kept, callbacks } = this.#parts
    kept?.journal.append({ family: this.#family.name, film: writeStoredTask(task, this.#family, kept.origin) })
    this.#family.tell?.(task, callbacks)
  }
}
