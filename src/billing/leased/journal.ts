import type { Timers } from '../../base/clock.ts'
import { DiskFull, type Disk, type SegmentFile } from './disk.ts'
import { FrameWriter, readFrames } from './frames.ts'
import { decodeRecord, encodeRecord, type JournalRecord } from './records.ts'

/** `interval`: a killed process loses nothing, a power cut at most 5 ms of records. `always`: neither loses anything. */
export type SyncMode = 'interval' | 'always'

export type JournalOptions = {
  readonly disk: Disk
  readonly timers: Timers
  readonly sync: SyncMode
  /** The disk refused to make bytes durable, and may have dropped them: the process must end and replay. */
  readonly fatal: (error: unknown) => void
  readonly segmentBytes?: number
}

const syncEveryMs = 5
const segmentBytesDefault = 16 * 1024 * 1024
const names = ['segment-a', 'segment-b'] as const

/**
 * An append-only record of what happens to money, in two files by turns. A new segment starts with a copy of everything
 * unfinished and the word OPEN; from then on the other file is not needed and is written over next time.
 */
export class Journal {
  readonly #options: JournalOptions
  readonly #writer = new FrameWriter()
  readonly #segmentBytes: number
  #file: SegmentFile | undefined
  #name: (typeof names)[number] = names[1]
  #generation: number
  #seq: number
  #position = 0
  #startBytes = 0
  #dirty = false
  #syncing: Promise<void> | undefined
  #cancelSync: (() => void) | undefined

  constructor(options: JournalOptions, last: { generation: number; seq: number; name: string | undefined }) {
    this.#options = options
    this.#segmentBytes = options.segmentBytes ?? segmentBytesDefault
    this.#generation = last.generation
    this.#seq = last.seq
    this.#name = last.name === names[0] ? names[0] : names[1]
  }

  /** Adds a record to what the next `write` writes. */
  append(record: JournalRecord): void {
    this.#writer.add(this.#generation, ++this.#seq, encodeRecord(record))
  }

  /**
   * Everything appended is in the kernel's hands when this returns: it survives the end of this process. `full`: only
   * because the reserve was given up for it, so nothing new may be begun.
   */
  write(): 'written' | 'full' {
    if (!this.#writer.pending || this.#file === undefined) return 'written'
    const outcome = this.#put(this.#file, this.#writer.take())
    this.#dirty = true
    if (this.#options.sync === 'interval') this.#syncLater()
    return outcome
  }

  /** Resolves once everything written is as durable as the setting asks for. */
  async durable(): Promise<void> {
    if (this.#options.sync === 'interval') return
    while (this.#dirty || this.#syncing !== undefined) await this.#sync()
  }

  /** Whether the segment is full; a copy of what is unfinished must fit in it more than once, or it would be rotated for ever. */
  get wantsRotation(): boolean {
    return this.#position > Math.max(this.#segmentBytes, this.#startBytes * 2)
  }

  /** Starts a segment with what is unfinished. Only when all of that is written does the older one lose its meaning. */
  rotate(unfinished: Iterable<JournalRecord>): void {
    this.write()
    const previous = this.#file
    this.#name = this.#name === names[0] ? names[1] : names[0]
    this.#generation++
    this.#position = 0
    this.#file = this.#options.disk.open(this.#name)
    for (const record of unfinished) this.append(record)
    this.append({ type: 'OPEN' })
    this.write()
    this.#startBytes = this.#position
    // A sync of it may still be under way; what it would make durable is in the new segment already.
    if (previous !== undefined) void (this.#syncing ?? Promise.resolve()).then(() => previous.close())
  }

  async close(): Promise<void> {
    this.#cancelSync?.()
    this.write()
    await this.#sync()
    this.#file?.close()
    this.#file = undefined
  }

  #put(file: SegmentFile, bytes: Uint8Array): 'written' | 'full' {
    let outcome: 'written' | 'full' = 'written'
    try {
      file.write(bytes, this.#position)
    } catch (thrown) {
      if (!(thrown instanceof DiskFull)) throw thrown
      // A settlement must be written whatever the disk says: the reserve was kept for exactly this.
      outcome = 'full'
      this.#options.disk.useReserve()
      file.write(bytes, this.#position)
    }
    this.#position += bytes.length
    return outcome
  }

  #syncLater(): void {
    this.#cancelSync ??= this.#options.timers.after(syncEveryMs, () => {
      this.#cancelSync = undefined
      void this.#sync()
      if (this.#dirty) this.#syncLater()
    })
  }

  #sync(): Promise<void> {
    if (this.#syncing !== undefined || !this.#dirty || this.#file === undefined)
      return this.#syncing ?? Promise.resolve()
    this.#dirty = false
    this.#syncing = this.#file
      .sync()
      .catch((error: unknown) => this.#options.fatal(error))
      .finally(() => {
        this.#syncing = undefined
      })
    return this.#syncing
  }
}

/** What the last process left: its records in order, and where numbering goes on. Throws where they cannot be trusted. */
export function recoverJournal(disk: Disk): {
  records: JournalRecord[]
  last: { generation: number; seq: number; name: string | undefined }
} {
  const segments = disk.list().map((name) => ({ name, ...readFrames(name, disk.read(name)) }))
  segments.sort((a, b) => b.generation - a.generation)
  let seq = 0
  for (const { frames } of segments) seq = Math.max(seq, frames.at(-1)?.seq ?? 0)
  const generation = segments[0]?.generation ?? 0
  for (const { name, frames } of segments) {
    const records = frames.map(({ payload }) => decodeRecord(payload))
    // Without OPEN its copy of the unfinished is not whole, so the segment before it still holds.
    if (records.some(({ type }) => type === 'OPEN')) return { records, last: { generation, seq, name } }
  }
  return { records: [], last: { generation, seq, name: undefined } }
}
