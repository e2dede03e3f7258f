import { DiskFull, type Disk, type SegmentFile } from '../../src/billing/leased/disk.ts'
import { Killed, type Life } from './life.ts'
import type { World } from './world.ts'

type Write = { readonly position: number; readonly bytes: Uint8Array; readonly number: number }

/**
 * `written` is what a read sees (the kernel's cache), `durable` what a power cut leaves, along with some of `unsynced`.
 */
type File = { written: Uint8Array; durable: Uint8Array; unsynced: Write[] }

export type DiskOptions = {
  readonly capacityBytes: number
  readonly reserveBytes: number
  /** The longest time that a sync takes. */
  readonly syncMsMax: number
}

const sectorBytes = 512

/** A disk in memory. It outlives the processes that use it, and knows what each kind of crash would leave on it. */
export class SimulatedDisk {
  readonly #world: World
  readonly #options: DiskOptions
  #files = new Map<string, File>()
  #hasReserve = false
  #writes = 0
  /** What others store on this disk. */
  othersBytes = 0
  /** How many of all writes, in order, a power cut can no longer undo. */
  syncedWrites = 0
  /** The probabilities of dying inside a write, and of a failing sync. */
  killInWrite = 0
  failSync = 0

  constructor(world: World, options: DiskOptions) {
    this.#world = world
    this.#options = options
  }

  get writes(): number {
    return this.#writes
  }

  /** A copy of the current state, as when another machine attaches the volume while this process still writes to it. */
  clone(): SimulatedDisk {
    const copy = new SimulatedDisk(this.#world, this.#options)
    for (const [name, { written }] of this.#files) {
      copy.#files.set(name, { written: written.slice(), durable: written.slice(), unsynced: [] })
    }
    copy.#hasReserve = this.#hasReserve
    copy.othersBytes = this.othersBytes
    copy.killInWrite = this.killInWrite
    copy.failSync = this.failSync
    return copy
  }

  /** Drops what was not synced: all of it, all but a beginning, or a random selection of sectors. */
  cutPower(): void {
    const { random } = this.#world
    const style = random.pick(['all', 'tail', 'sectors'] as const)
    for (const [name, file] of this.#files) {
      const kept = style === 'all' ? 0 : random.between(0, file.unsynced.length)
      let content = file.durable
      for (const [at, { position, bytes }] of file.unsynced.entries()) {
        if (style === 'sectors') {
          for (let from = 0; from < bytes.length;) {
            const end = Math.min(bytes.length, from + sectorBytes - ((position + from) % sectorBytes))
            if (random.chance(0.7)) content = overwrite(content, position + from, bytes.subarray(from, end))
            from = end
          }
        } else if (at < kept) content = overwrite(content, position, bytes)
        else if (at === kept && style === 'tail') {
          content = overwrite(content, position, bytes.subarray(0, random.between(0, bytes.length)))
        }
      }
      this.#files.set(name, { written: content.slice(), durable: content, unsynced: [] })
    }
  }

  /** The disk as one process sees it while it lives. */
  attach(life: Life): Disk {
    return {
      list: () => [...this.#files.keys()],
      read: (name) => this.#file(name).written.slice(),
      open: (name) => this.#open(life, name),
      reserve: () => {
        if (!this.#hasReserve) this.#hasReserve = this.#free() >= this.#options.reserveBytes
        return this.#hasReserve
      },
      useReserve: () => {
        this.#hasReserve = false
      },
    }
  }

  #open(life: Life, name: string): SegmentFile {
    if (!life.isAlive) throw new Killed()
    const file = this.#files.get(name) ?? { written: new Uint8Array(), durable: new Uint8Array(), unsynced: [] }
    this.#files.set(name, file)
    return {
      write: (bytes, position) => this.#write(life, file, bytes, position),
      sync: () => this.#sync(life, file),
      close: () => {},
    }
  }

  #write(life: Life, file: File, bytes: Uint8Array, position: number): void {
    if (!life.isAlive) throw new Killed()
    const { random } = this.#world
    const growth = Math.max(0, position + bytes.length - file.written.length)
    const isFull = growth > this.#free()
    const isKilled = random.chance(this.killInWrite)
    const fits = isFull ? bytes.length - growth + Math.max(0, this.#free()) : bytes.length
    const put = isKilled ? random.between(0, fits) : fits
    if (put > 0) {
      // Not `slice`, which does not copy a Buffer.
      const copy = new Uint8Array(bytes.subarray(0, put))
      file.written = overwrite(file.written, position, copy)
      file.unsynced.push({ position, bytes: copy, number: ++this.#writes })
    }
    if (isKilled) {
      this.#world.tell(`${life.name} is struck inside a write`)
      life.kill(random.pick(['kill', 'power']))
      throw new Killed()
    }
    if (isFull) throw new DiskFull()
  }

  #sync(life: Life, file: File): Promise<void> {
    const upTo = this.#writes
    const { random } = this.#world
    const fails = random.chance(this.failSync)
    return new Promise((resolve, reject) => {
      this.#world.after(random.between(0, this.#options.syncMsMax), () => {
        if (!life.isAlive) return
        if (fails) {
          this.#world.tell(`${life.name}: a sync fails`)
          return reject(new Error('EIO: the simulated disk could not sync'))
        }
        const done = file.unsynced.filter(({ number }) => number <= upTo)
        for (const { position, bytes } of done) file.durable = overwrite(file.durable, position, bytes)
        file.unsynced = file.unsynced.filter(({ number }) => number > upTo)
        this.syncedWrites = Math.max(this.syncedWrites, upTo)
        resolve()
      })
    })
  }

  #free(): number {
    let used = this.othersBytes + (this.#hasReserve ? this.#options.reserveBytes : 0)
    for (const { written } of this.#files.values()) used += written.length
    return this.#options.capacityBytes - used
  }

  #file(name: string): File {
    const file = this.#files.get(name)
    if (file === undefined) throw new Error(`there is no ${name}`)
    return file
  }
}

function overwrite(content: Uint8Array, position: number, bytes: Uint8Array): Uint8Array {
  const end = position + bytes.length
  const whole = end <= content.length ? content : new Uint8Array(end)
  if (whole !== content) whole.set(content)
  whole.set(bytes, position)
  return whole
}
