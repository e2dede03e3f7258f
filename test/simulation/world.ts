import { drainMicrotasks } from 'bun:jsc'
import type { Clock, Timers } from '../../src/base/clock.ts'
import { Random } from './random.ts'

type Due = { readonly at: number; readonly order: number; readonly run: () => void; off: boolean }

/**
 * Time, and everything that waits for it, in one thread: an event runs, then every promise that it resolved, then the
 * next event. Nothing happens by itself, so the seed alone determines a run.
 */
export class World implements Timers {
  readonly random: Random
  /** Milliseconds since the run began. */
  now = 0
  /** What must never happen but did. */
  readonly failures: string[] = []
  readonly clock: Clock = { now: () => 1_800_000_000_000 + this.now, monotonic: () => this.now }
  #due: Due[] = []
  #order = 0
  #story: string[] = []

  constructor(seed: number) {
    this.random = new Random(seed)
  }

  after(ms: number, run: () => void): () => void {
    const due: Due = { at: this.now + ms, order: ++this.#order, run, off: false }
    this.#due.splice(this.#placeOf(due.at), 0, due)
    return () => {
      due.off = true
    }
  }

  /** Behind everything that is due until then. */
  #placeOf(at: number): number {
    let [low, high] = [0, this.#due.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#due[middle]?.at ?? Infinity) > at) high = middle
      else low = middle + 1
    }
    return low
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve))
  }

  /** Lets time pass until that moment, until nothing is left to do, or until something has failed. */
  run(until: number): void {
    drainMicrotasks()
    while (this.failures.length === 0) {
      const next = this.#due[0]
      if (next === undefined || next.at > until) break
      this.#due.shift()
      if (next.off) continue
      this.now = next.at
      try {
        next.run()
      } catch (thrown) {
        this.fail(`an event threw ${describe(thrown)}`)
      }
      drainMicrotasks()
    }
    this.now = Math.max(this.now, until)
  }

  fail(what: string): void {
    this.failures.push(`${this.now} ms: ${what}`)
  }

  /** Recorded for the story of a failed seed. */
  tell(what: string): void {
    this.#story.push(`${this.now} ms: ${what}`)
  }

  story(lines: number): string[] {
    return this.#story.slice(-lines)
  }
}

export function describe(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
}
