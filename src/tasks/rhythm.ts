import type { Timers } from '../base/clock.ts'

const everyMs = 200
// The pause while no task is watched. This node hears of its own tasks by `attend`, and another node polls its own.
// Where that node dies, its claims last for up to a minute anyway, so these seconds hardly add to the wait.
const idleMs = 5_000

type Work = {
  /** Done once, before the first turn. */
  begin(): Promise<void>
  /** Says whether anything is under way after it. */
  turn(): Promise<boolean>
  /** Asked where nothing is under way: whether there is anything to wait for. */
  isWatching(): Promise<boolean>
  readonly succeeded: () => void
  readonly failed: (thrown: unknown) => void
}

/** Takes the turns of a poller one after another, with one timer however often it is woken. */
export class Rhythm {
  readonly #timers: Timers
  readonly #work: Work
  #running: Promise<void>
  #isRunning = false
  #isWanted = false
  #isIdle = false
  #isClosed = false
  #callOff: () => void

  constructor(timers: Timers, work: Work) {
    this.#timers = timers
    this.#work = work
    this.#running = work.begin().catch(work.failed)
    this.#callOff = timers.after(everyMs, this.#run)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Takes a turn now, or once the one under way has ended. */
  wake(): void {
    if (this.#isClosed) return
    this.#callOff()
    this.#run()
  }

  /** Ends the long pause of a time when nothing is watched. */
  attend(): void {
    if (!this.#isIdle || this.#isClosed) return
    this.#isIdle = false
    if (this.#isRunning) return
    this.#callOff()
    this.#callOff = this.#timers.after(everyMs, this.#run)
  }

  /** Resolves when no turn is under way. */
  quiet(): Promise<void> {
    return this.#running
  }

  close(): void {
    this.#isClosed = true
    this.#callOff()
  }

  readonly #run = (): void => {
    this.#isWanted = true
    if (this.#isRunning) return
    this.#isRunning = true
    this.#running = this.#running.then(() => this.#takeTurns())
  }

  async #takeTurns(): Promise<void> {
    while (this.#isWanted && !this.#isClosed) {
      this.#isWanted = false
      this.#isIdle = false
      await this.#turnOrRest().then(this.#work.succeeded, this.#work.failed)
    }
    this.#isRunning = false
    if (!this.#isClosed) this.#callOff = this.#timers.after(this.#isIdle ? idleMs : everyMs, this.#run)
  }

  async #turnOrRest(): Promise<void> {
    const isBusy = await this.#work.turn()
    this.#isIdle = true // set before the question, so that `attend` can reset it for a task that comes meanwhile
    if (isBusy || (await this.#work.isWatching())) this.#isIdle = false
  }
}
