import type { BillLine } from '../bill.ts'
import { type Fields, isFields } from '../fields.ts'
import { type Journal, keptMs } from './journal.ts'

/** What a journal holds from the last day. */
export type Recalled = {
  readonly lines: readonly BillLine[]
  /** The latest record of each video, by family and id. */
  readonly videos: ReadonlyMap<string, ReadonlyMap<string, Fields>>
}

/** Reads a journal from its beginning. A video's last record counts; cleared bills and forgotten videos are dropped. */
export function recall(journal: Journal | undefined, now: number): Recalled {
  let lines: BillLine[] = []
  const videos = new Map<string, Map<string, Fields>>()
  for (const record of journal?.read() ?? []) {
    if (!isFields(record)) continue
    const { bill, at, cleared, family, film, forgotten } = record
    if (cleared === true) lines = []
    if (isLine(bill) && isRecent(at, now)) lines.push(bill)
    if (typeof family !== 'string') continue
    const known = videos.get(family) ?? new Map<string, Fields>()
    videos.set(family, known)
    if (typeof forgotten === 'string') known.delete(forgotten)
    if (isFields(film) && typeof film.id === 'string' && isRecent(film.changedAt, now)) known.set(film.id, film)
  }
  return { lines, videos }
}

function isRecent(at: unknown, now: number): boolean {
  return typeof at === 'number' && now - at < keptMs
}

function isLine(value: unknown): value is BillLine {
  if (!isFields(value)) return false
  const { ref, model, status, units, cost } = value
  const isNamed = (ref === null || typeof ref === 'string') && typeof model === 'string'
  return isNamed && typeof status === 'number' && isFields(units) && typeof cost === 'string'
}
