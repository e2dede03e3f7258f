import type { Timers } from '../../base/clock.ts'
import { asError } from '../../base/errors.ts'
import { DiskFull, type Disk, type SegmentFile } from './disk.ts'
import { FrameWriter, JournalCorrupt, readFrames } from './frames.ts'
import { decodeRecord, encodeRecord, type EncodedRecord, type JournalRecord } from './records.ts'

/**
 * `interval`: a killed process loses nothing; a power cut loses what was written in the last 5 ms and while the last
 * sync ran. `always`: a power cut does not take a settlement that a client was told of, either.
 */
export type SyncMode = 'interval' | 'always'

export type JournalOptions = {
  readonly disk: Disk
  readonly timers: Timers
  readonly sync: SyncMode
  /** The disk refused to make bytes durable, and may have dropped them: the process must end and replay. */
  readonly fatal: (error: unknown) => void
  readonly segmentBytes?: number | undefined
}

const syncEveryMs = 5
const segmentBytesDefault = 16 * 1024 * 1024
const names = ['segment-a', 'segment-b'] as const
type SegmentName = (typeof names)[number]

/**
 * An append-only record of what happens to money, in two files that are used by turns. A new segment starts with a copy
 * of everything unfinished and an OPEN record; from then on the other file is not needed, and the next rotation
 * overwrites it.
 */
export class Journal {
  readonly #options: JournalOptions
  readonly #writer = new FrameWriter()
  readonly #segmentBytes: number
  /** Whether a segment of the last process was recovered. */
  readonly #isInherited: boolean
  #file: SegmentFile | undefined
  /** The next segment's file, opened in advance: by then the process may have as many files open as it is allowed. */
  #spare: SegmentFile | undefined
  #name: SegmentName = names[1]
  #generation: number
  #seq: number
  #position = 0
  /** How many bytes of the segment a power cut cannot take away. */
  #durableBytes = 0
  #startBytes = 0
  /** How many writes there were, and how many are durable, either themselves or by their copy in a newer segment. */
  #writes = 0
  #durableWrites = 0
  /** Why nothing may be written any more. */
  #failure: Error | undefined
  #syncing: Promise<void> | undefined
  #cancelSync: (() => void) | undefined

  constructor(options: JournalOptions, last: { generation: number; seq: number; name: string | undefined }) {
    this.#options = options
    this.#segmentBytes = options.segmentBytes ?? segmentBytesDefault
    this.#generation = last.generation
    this.#seq = last.seq
    this.#isInherited = last.name !== undefined
    this.#name = last.name === names[0] ? names[0] : names[1]
  }

  /** Adds a record to what the next `write` writes. */
  append(record: JournalRecord | EncodedRecord): void {
    const payload = typeof record === 'string' ? record : encodeRecord(record)
    this.#writer.add(this.#generation, ++this.#seq, this.#durableBytes, payload)
  }

  /**
   * When this returns, everything appended is in the kernel's hands and survives the end of this process. `full`: it
   * only fitted because the reserve was given up for it, so nothing new may be begun.
   */
  write(): 'written' | 'full' {
    if (this.#failure !== undefined) throw this.#failure
    if (!this.#writer.pending) return 'written'
    if (this.#file === undefined) throw new Error('the journal is closed')
    const outcome = this.#put(this.#file, this.#writer.bytes)
    this.#writer.clear()
    this.#writes++
    this.#syncLater()
    return outcome
  }

  /**
   * Resolves once everything written is as durable as the setting asks for, and rejects if it cannot be made so;
   * undefined where it already is.
   */
  recorded(): Promise<void> | undefined {
    return this.#options.sync === 'always' ? this.durable() : undefined
  }

  /** Resolves once no power cut can take away what was written before this call. */
  async durable(): Promise<void> {
    // Writes that come meanwhile are not waited for: under load there are always more of them.
    const writes = this.#writes
    while (this.#durableWrites < writes) await this.#sync()
  }

  /**
   * Whether the segment is full. It must take twice the copy that it started with, or it would be rotated again and
   * again. Its own start must be durable first, since until then the file to be overwritten is all that a power cut
   * would leave.
   */
  get wantsRotation(): boolean {
    return this.#durableBytes > 0 && this.#position > Math.max(this.#segmentBytes, this.#startBytes * 2)
  }

  /**
   * Starts the first segment of this process. The segment of the last process may be in the kernel's hands alone, and a
   * power cut would then leave only the file that is about to be overwritten: so that segment is made durable first.
   */
  async begin(unfinished: Iterable<JournalRecord | EncodedRecord>): Promise<'written' | 'full'> {
    const { disk } = this.#options
    this.#file = disk.open(this.#name)
    this.#spare = disk.open(otherThan(this.#name))
    if (this.#isInherited) await this.#file.sync()
    return this.rotate(unfinished)
  }

  /** Starts a segment with what is unfinished. The older segment counts until all of that is written. */
  rotate(unfinished: Iterable<JournalRecord | EncodedRecord>): 'written' | 'full' {
    const before = this.write()
    ;[this.#file, this.#spare] = [this.#spare, this.#file]
    this.#name = otherThan(this.#name)
    this.#generation++
    this.#position = 0
    this.#durableBytes = 0
    for (const record of unfinished) this.append(record)
    this.append({ type: 'OPEN' })
    try {
      const after = this.write()
      return before === 'full' ? before : after
    } finally {
      this.#startBytes = this.#position
    }
  }

  async close(): Promise<void> {
    try {
      this.#writeLast()
      await this.durable()
    } finally {
      await this.#syncing?.catch(() => {})
      this.#cancelSync?.()
      this.#file?.close()
      this.#spare?.close()
      this.#file = undefined
      this.#spare = undefined
    }
  }

  #writeLast(): void {
    try {
      this.write()
    } catch (thrown) {
      // Only FLUSHED records can be left by now: without them the postings are just sent again, to no effect.
      if (!(thrown instanceof DiskFull)) throw thrown
    }
  }

  #put(file: SegmentFile, bytes: Uint8Array): 'written' | 'full' {
    let outcome: 'written' | 'full' = 'written'
    try {
      file.write(bytes, this.#position)
    } catch (thrown) {
      if (!(thrown instanceof DiskFull)) throw thrown
      // A settlement must be written even on a full disk: the reserve was kept for exactly this.
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
      if (this.#syncing !== undefined) return this.#syncLater()
      // Callers that must know of a failure await the sync themselves, and `fatal` is called in any case.
      this.#sync().catch(() => {})
    })
  }

  #sync(): Promise<void> {
    this.#syncing ??= this.#syncNow().finally(() => {
      this.#syncing = undefined
    })
    return this.#syncing
  }

  async #syncNow(): Promise<void> {
    // Never sync again after a failure: the kernel may have dropped the bytes, and would call the next sync a success.
    if (this.#failure !== undefined) throw this.#failure
    const [generation, position, writes] = [this.#generation, this.#position, this.#writes]
    // While the start of a segment could not be written, everything is in the one before.
    const file = position === 0 ? this.#spare : this.#file
    try {
      await file?.sync()
    } catch (error) {
      this.#failure = asError(error)
      this.#options.fatal(this.#failure)
      throw this.#failure
    }
    this.#durableWrites = writes
    if (generation === this.#generation) this.#durableBytes = position
  }
}

function otherThan(name: SegmentName): SegmentName {
  return name === names[0] ? names[1] : names[0]
}

/**
 * What the last process left: its records in order, and where the numbering goes on. Throws if the records cannot be
 * trusted. A newer segment without OPEN holds an incomplete copy of what was unfinished, so the one before it counts.
 */
export function recoverJournal(disk: Disk): {
  records: JournalRecord[]
  last: { generation: number; seq: number; name: string | undefined }
} {
  const segments = disk.list().map((name) => ({ name, ...readFrames(disk.read(name)) }))
  segments.sort((a, b) => b.generation - a.generation)
  let found: { name: string; generation: number; records: JournalRecord[] } | undefined
  for (const { name, generation, frames } of segments) {
    const records = frames.map(({ payload }) => decodeRecord(payload))
    if (found === undefined && records.some(({ type }) => type === 'OPEN')) found = { name, generation, records }
  }
  for (const { name, damage } of segments) {
    // Damage to a segment that a newer one has replaced does not matter.
    if (damage !== undefined && damage.generation >= (found?.generation ?? 0)) {
      throw new JournalCorrupt(name, damage.offset)
    }
  }
  const last = {
    generation: Math.max(0, ...segments.map(({ newest }) => newest.generation)),
    seq: Math.max(0, ...segments.map(({ newest }) => newest.seq)),
    name: found?.name,
  }
  return { records: found?.records ?? [], last }
}
