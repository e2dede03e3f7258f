import type { Timers } from '../../base/clock.ts'
import { DiskFull, type Disk, type SegmentFile } from './disk.ts'
import { FrameWriter, JournalCorrupt, readFrames } from './frames.ts'
import { decodeRecord, encodeRecord, type EncodedRecord, type JournalRecord } from './records.ts'

/**
 * `interval`: a killed process loses nothing, a power cut what was written while the last sync ran, and 5 ms more.
 * `always`: nor does a power cut take a settlement that somebody was told of.
 */
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
type SegmentName = (typeof names)[number]

/**
 * An append-only record of what happens to money, in two files by turns. A new segment starts with a copy of everything
 * unfinished and the word OPEN; from then on the other file is not needed and is written over next time.
 */
export class Journal {
  readonly #options: JournalOptions
  readonly #writer = new FrameWriter()
  readonly #segmentBytes: number
  /** Whether a segment was recovered. */
  readonly #isInherited: boolean
  #file: SegmentFile | undefined
  /** The next segment's, open long before: by then the process may have as many files open as it is allowed. */
  #spare: SegmentFile | undefined
  #name: SegmentName = names[1]
  #generation: number
  #seq: number
  #position = 0
  /** How much of the segment a power cut cannot take away. */
  #durableBytes = 0
  #startBytes = 0
  /** How often was written, and how many of these writes are durable, themselves or by their copy in a newer segment. */
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
   * Everything appended is in the kernel's hands when this returns: it survives the end of this process. `full`: only
   * because the reserve was given up for it, so nothing new may be begun.
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
   * Resolves once everything written is as durable as the setting asks for; nothing where it is so already. Rejects where
   * that cannot be had.
   */
  recorded(): Promise<void> | undefined {
    return this.#options.sync === 'always' ? this.durable() : undefined
  }

  /** Resolves once no power cut can take away what is written by now. */
  async durable(): Promise<void> {
    // Not what others write meanwhile: under load there is always some more of that.
    const writes = this.#writes
    while (this.#durableWrites < writes) await this.#sync()
  }

  /**
   * Whether the segment is full; a copy of what is unfinished must fit in it more than once, or it would be rotated for
   * ever. Not before its own start is durable: the file that would be written over is all that a power cut leaves till then.
   */
  get wantsRotation(): boolean {
    return this.#durableBytes > 0 && this.#position > Math.max(this.#segmentBytes, this.#startBytes * 2)
  }

  /**
   * The first segment of this process. What the last one left may be in the kernel's hands alone, and the file that is
   * about to be written over is all that a power cut would leave: so it is made durable first.
   */
  async begin(unfinished: Iterable<JournalRecord | EncodedRecord>): Promise<'written' | 'full'> {
    const { disk } = this.#options
    this.#file = disk.open(this.#name)
    this.#spare = disk.open(otherThan(this.#name))
    if (this.#isInherited) await this.#file.sync()
    return this.rotate(unfinished)
  }

  /** Starts a segment with what is unfinished. Only when all of that is written does the older one lose its meaning. */
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
      // All that can be left by now is what has been flushed: unwritten, it is only posted again, to no effect.
      if (!(thrown instanceof DiskFull)) throw thrown
    }
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
      if (this.#syncing !== undefined) return this.#syncLater()
      // Whoever must know of a failure waits for it, or is told by `fatal`.
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
    // Never a second time after a failure: the kernel may have dropped the bytes, and would call the next one a success.
    if (this.#failure !== undefined) throw this.#failure
    const [generation, position, writes] = [this.#generation, this.#position, this.#writes]
    try {
      await this.#file?.sync()
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error))
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
 * What the last process left: its records in order, and where numbering goes on. Throws where they cannot be trusted.
 * A newer segment without OPEN is a copy of the unfinished that did not get whole, so the one before it still holds.
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
    // Damage to what a newer segment has made superfluous is none.
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
