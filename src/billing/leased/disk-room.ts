import type { Timers } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Disk } from './disk.ts'

// How often a full disk is checked for room.
const checkEveryMs = 1_000

type Parts = { readonly disk: Disk; readonly timers: Timers; readonly log: Log }

/** Whether the journal's disk has room. Once it is found full, it is checked until there is room again. */
export class DiskRoom {
  readonly #parts: Parts
  #isFull = false
  #callOff: (() => void) | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    if (!parts.disk.reserve()) this.noticeFull()
  }

  get isFull(): boolean {
    return this.#isFull
  }

  noticeFull(): void {
    if (this.#isFull) return
    this.#isFull = true
    this.#parts.log.error({}, 'the disk of the journal is full: nothing new is admitted')
    this.#checkLater()
  }

  close(): void {
    this.#callOff?.()
  }

  #checkLater(): void {
    this.#callOff = this.#parts.timers.after(checkEveryMs, () => {
      this.#isFull = !this.#canReserve()
      if (this.#isFull) this.#checkLater()
      else this.#parts.log.info({}, 'the disk of the journal has room again')
    })
  }

  #canReserve(): boolean {
    try {
      return this.#parts.disk.reserve()
    } catch {
      return false // other faults than a full disk, such as too many open files, pass too, or show at the next try
    }
  }
}
