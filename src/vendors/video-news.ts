import { GatewayError } from '../base/errors.ts'
import { isObject, type JsonObject } from '../base/json.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import type { VideoNews, VideoResult } from '../capabilities/video.ts'
import type { Usage } from '../capabilities/usage.ts'
import { parseLoosely } from '../wire/loose.ts'
import type { ResponseWithStatus, VendorResponse } from './vendor.ts'

/** A vendor's words for the states of its tasks. An unknown word keeps the state, because it must never end a task. */
export type StateWords = Readonly<Record<string, Exclude<VideoNews['state'], 'unknown-word'>>>

/** What a vendor's record says, in one shape for all vendors. */
export type TaskRecord = {
  readonly word: string
  readonly record: JsonObject
  readonly error?: { readonly code: string; readonly message: string }
  /** Used only for tasks that succeeded. */
  readonly result?: VideoResult | undefined
  readonly used?: Usage | undefined
}

export function newsOf(words: StateWords, { word, record, error, result, used }: TaskRecord): VideoNews {
  const state = (Object.hasOwn(words, word) ? words[word] : undefined) ?? 'unknown-word'
  const isMade = state === 'succeeded'
  return {
    state,
    word,
    record,
    ...(isMade && result !== undefined && { result }),
    ...(isMade && used !== undefined && { used }),
    ...(state === 'failed' && error !== undefined && { error }),
  }
}

/** The vendor does not know the task: it never existed, is too old, or has been deleted. */
export const lost: VideoNews = { state: 'lost', word: '404', record: {} }

/** The JSON object in a successful response. Throws for any other body, which says nothing about a task. */
export function parseBodyObject({ body }: VendorResponse): JsonObject {
  const json = parseLoosely(decodeUtf8(body))
  if (isObject(json)) return json
  throw unexpected()
}

/** The same for a response whose status has not been judged yet: it must be a success. */
export function parseSuccessBody(response: ResponseWithStatus): JsonObject {
  if (response.status < 200 || response.status > 299) throw unexpected()
  return parseBodyObject(response)
}

export function unexpected(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor did not answer as it should.")
}

/** Ids are written into URLs, so one that could lead elsewhere is rejected. */
export function idIn(value: unknown, pattern = /^[\w.-]{1,200}$/): string {
  if (typeof value === 'string' && pattern.test(value) && !/^\.+$/.test(value)) return value
  throw unexpected()
}

/** Seconds as a vendor counts them, to the millisecond: a client's own video rarely has whole seconds. */
export function secondsIn(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,6}(?:\.\d{1,9})?$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && seconds >= 0 && seconds < secondsMax
    ? Math.round(seconds * 1_000) / 1_000
    : undefined
}

// An hour: no vendor makes a video of that length, so a larger number is a mistake.
const secondsMax = 3_600

/** When a task in a list was created. One without a time may be of any time, so it counts as recent. */
export function timeIn(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : Number.MAX_SAFE_INTEGER
}

/** The same for a time in whole seconds. A second is named by its beginning, so its end is taken. */
export function timeInSeconds(value: unknown): number {
  return timeIn(value) * 1_000 + 999
}

/**
 * How much a vendor's clock and ours may differ: a task that the vendor dates this long before we sent ours may still
 * be ours. A machine whose clock is not synchronised is some minutes off; too small a value here buys a video twice.
 */
export const clockSkewMs = 10 * 60_000

/**
 * A list without our reference can only show that a task is absent. A listed task that might be ours may also be
 * another's, and adopting it could give one account the video of another.
 */
export function absentOrUnsure(
  tasks: readonly { readonly id: string; readonly createdAt: number }[],
  sought: { readonly sentAt: number; readonly knownIds?: ReadonlySet<string> },
): 'absent' | 'unsure' {
  const strangers = tasks.filter(
    ({ id, createdAt }) => createdAt >= sought.sentAt - clockSkewMs && sought.knownIds?.has(id) !== true,
  )
  return strangers.length === 0 ? 'absent' : 'unsure'
}

/** Whether a page of a longer list is enough: it must show that the newest come first, and reach back far enough. */
export function reachesBack(
  tasks: readonly { readonly createdAt: number }[],
  { sentAt }: { readonly sentAt: number },
): boolean {
  const isNewestFirst = tasks.every(({ createdAt }, at) => createdAt <= (tasks[at - 1]?.createdAt ?? createdAt))
  return isNewestFirst && (tasks.at(-1)?.createdAt ?? sentAt) < sentAt - clockSkewMs
}
