import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { parsedOr } from '../fields.ts'

/** What outlives the process, one record per line. */
export type Journal = {
  /** All records still kept, oldest first, without damaged ones. */
  read(): unknown[]
  /** Writes before a response can report the record. Records of one turn of the event loop are written together. */
  append(record: object): void
  close(): void
}

// Only two files of this size are kept: some five thousand videos, or a hundred thousand lines of the bill, which take
// 0.3 s to read. Writing a line takes 6 µs.
const fileBytesMax = 8 * 1024 * 1024
/** How long a record counts. */
export const keptMs = 24 * 60 * 60 * 1_000

type JournalOptions = {
  readonly folder: string
  readonly now: number
  /** Called with the reason if nothing can be kept. The simulators still answer. */
  readonly complain: (cause: unknown) => void
  readonly bytesMax?: number
}

/** Only appends. A full file becomes the older one and replaces the previous older one. */
export function openJournal({ folder, now, complain, bytesMax = fileBytesMax }: JournalOptions): Journal {
  const current = join(folder, 'journal.jsonl')
  const older = join(folder, 'journal.old.jsonl')
  let pending: string[] = []
  let file: number | undefined
  let bytes = 0

  function tryTo(work: () => void): void {
    try {
      work()
    } catch (cause) {
      if (file !== undefined) closeSync(file)
      file = undefined
      pending = []
      complain(cause)
    }
  }
  function open(): void {
    file = openSync(current, 'a', 0o600)
    bytes = fstatSync(file).size
  }
  function flush(): void {
    if (file === undefined || pending.length === 0) return
    // The newline comes before each record, so that a record that was cut off does not damage the next one.
    const text = pending.map((line) => `\n${line}`).join('')
    pending = []
    bytes += writeSync(file, text)
    if (bytes < bytesMax) return
    closeSync(file)
    file = undefined
    renameSync(current, older)
    open()
  }

  tryTo(() => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const path of [older, current]) if (isOutdated(path, now)) rmSync(path)
    open()
  })
  return {
    read: () => [older, current].flatMap(readRecords),
    append(record) {
      if (file === undefined) return
      pending.push(JSON.stringify(record))
      if (pending.length === 1) queueMicrotask(() => tryTo(flush))
    },
    close() {
      tryTo(flush)
      if (file !== undefined) closeSync(file)
      file = undefined
    },
  }
}

function isOutdated(path: string, now: number): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found !== undefined && now - found.mtimeMs > keptMs
}

function readRecords(path: string): unknown[] {
  return readText(path)
    .split('\n')
    .map((line) => parsedOr(line, undefined))
    .filter((record) => record !== undefined)
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
