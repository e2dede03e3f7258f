import type { Timers } from '../../base/clock.ts'

/** What is to happen to tasks later. */
export class TaskTimers {
  readonly #timers: Timers
  readonly #callOffs = new Map<object, (() => void)[]>()

  constructor(timers: Timers) {
    this.#timers = timers
  }

  after(task: object, ms: number, run: () => void): void {
    const callOffs = this.#callOffs.get(task) ?? []
    callOffs.push(this.#timers.after(ms, run))
    this.#callOffs.set(task, callOffs)
  }

  /** Calls off all that would still happen to a task. */
  callOff(task: object): void {
    for (const callOff of this.#callOffs.get(task) ?? []) callOff()
    this.#callOffs.delete(task)
  }

  stop(): void {
    for (const task of this.#callOffs.keys()) this.callOff(task)
  }
}
