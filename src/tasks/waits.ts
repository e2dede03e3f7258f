import { isUnavailable } from '../store/faults.ts'
import { type Task, taskById } from '../store/tasks.ts'
import type { TaskParts } from './parts.ts'
import { isOver } from './state.ts'

// Another node may see a task's end and does not notify this one, so a waiting request rereads the task this often.
const waitPollMs = 1_000

/** The requests that wait on this node for the ends of tasks. */
export class Waits {
  readonly #parts: Pick<TaskParts, 'store' | 'clock' | 'timers'>
  readonly #wakesOf = new Map<string, Set<() => void>>()
  readonly #hurried = new AbortController()

  constructor(parts: Pick<TaskParts, 'store' | 'clock' | 'timers'>) {
    this.#parts = parts
  }

  /** Aborts on `hurry`. */
  get hurried(): AbortSignal {
    return this.#hurried.signal
  }

  /** The task once it is over, or as it was last known when the time has run out. */
  async wait(task: Task, ms: number, signal: AbortSignal): Promise<Task> {
    const { clock } = this.#parts
    const endsAt = clock.monotonic() + ms
    let current = task
    for (;;) {
      const left = endsAt - clock.monotonic()
      if (isOver(current.state) || left <= 0 || signal.aborted || this.hurried.aborted) return current
      await this.#pause(task.id, Math.min(left, waitPollMs), signal)
      current = (await this.#reread(current)) ?? current
    }
  }

  /** To be called when this node sees the end of a task. */
  wake(taskId: string): void {
    for (const wake of this.#wakesOf.get(taskId) ?? []) wake()
  }

  /** Ends every wait, also those that begin later. */
  hurry(): void {
    this.#hurried.abort()
    for (const wakes of this.#wakesOf.values()) for (const wake of wakes) wake()
  }

  /** Resolves when this node sees the end of the task, when the time is over, or on abort. */
  async #pause(taskId: string, ms: number, signal: AbortSignal): Promise<void> {
    const wakes = this.#wakesOf.get(taskId) ?? new Set()
    this.#wakesOf.set(taskId, wakes)
    await new Promise<void>((resolve) => {
      const wake = () => {
        cancel()
        signal.removeEventListener('abort', wake)
        wakes.delete(wake)
        if (wakes.size === 0) this.#wakesOf.delete(taskId)
        resolve()
      }
      const cancel = this.#parts.timers.after(ms, wake)
      signal.addEventListener('abort', wake, { once: true })
      wakes.add(wake)
    })
  }

  /** Undefined while the database is unavailable, which must not fail the client's wait. */
  async #reread({ accountId, id }: Task): Promise<Task | undefined> {
    try {
      return await taskById(this.#parts.store.db, { scope: { accountId }, id })
    } catch (thrown) {
      if (isUnavailable(thrown)) return undefined
      throw thrown
    }
  }
}
