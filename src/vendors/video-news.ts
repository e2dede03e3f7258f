import { GatewayError } from '../base/errors.ts'
import { isObject, type JsonObject } from '../base/json.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import type { VideoNews, VideoResult } from '../capabilities/video.ts'
import type { Usage } from '../capabilities/usage.ts'
import { parseLoosely } from '../wire/loose.ts'
import type { Answered, Responded } from './vendor.ts'

/** A vendor's words for the states of its tasks. A word that is not here keeps the state: it must never end a task. */
export type StateWords = Readonly<Record<string, Exclude<VideoNews['state'], 'unknown-word'>>>

/** What a vendor's record says, taken out of wherever it stands there. */
export type TaskRecord = {
  readonly word: string
  readonly record: JsonObject
  readonly error?: { readonly code: string; readonly message: string }
  /** Looked at for tasks that succeeded. */
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

/** Where the vendor does not know the task: it never was, or was too long ago, or has been deleted. */
export const lost: VideoNews = { state: 'lost', word: '404', record: {} }

/** The object that a good response holds. Anything else says nothing, of a task or of itself. */
export function objectOf({ body }: Responded): JsonObject {
  const json = parseLoosely(decodeUtf8(body))
  if (isObject(json)) return json
  throw unexpected()
}

/** The same for a call about a task, which must be good first. */
export function goodObjectOf(response: Answered): JsonObject {
  if (response.status < 200 || response.status > 299) throw unexpected()
  return objectOf(response)
}

export function unexpected(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor did not answer as it should.")
}

/** Ids are written into addresses: one that could lead elsewhere is none. */
export function idIn(value: unknown, pattern = /^[\w.-]{1,200}$/): string {
  if (typeof value === 'string' && pattern.test(value) && !/^\.+$/.test(value)) return value
  throw unexpected()
}

/** Whole seconds, since they are multiplied with a price: a part of one counts as one. */
export function secondsIn(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,6}(?:\.\d{1,9})?$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && seconds >= 0 && seconds < secondsMax ? Math.ceil(seconds) : undefined
}

// An hour: no vendor makes a film of that length, and a number beyond it is a mistake.
const secondsMax = 3_600

/** A moment in a list; a task without one may be of any time. */
export function timeIn(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : Number.MAX_SAFE_INTEGER
}

/** The same where it is told in whole seconds, each of which is named by its beginning. */
export function timeInSeconds(value: unknown): number {
  return timeIn(value) * 1_000 + 999
}

/**
 * A vendor's clock and ours may differ by so much: a task that it dates so long before we sent ours may be ours. A machine
 * whose clock nobody sets is some minutes wrong; too little here buys a film twice.
 */
export const clockSkewMs = 10 * 60_000

/**
 * A list without our reference can only say that a task is not in it. One that might be ours is somebody's all the same:
 * to take it for ours could give one account the film of another.
 */
export function soughtAmong(
  tasks: readonly { readonly id: string; readonly createdAt: number }[],
  sought: { readonly sentAt: number; readonly knownIds?: ReadonlySet<string> },
): 'absent' | 'unsure' {
  const strangers = tasks.filter(
    ({ id, createdAt }) => createdAt >= sought.sentAt - clockSkewMs && sought.knownIds?.has(id) !== true,
  )
  return strangers.length === 0 ? 'absent' : 'unsure'
}

/** A page that is not the whole list counts where it shows that the newest come first, and that it reaches back far enough. */
export function reachesBack(
  tasks: readonly { readonly createdAt: number }[],
  { sentAt }: { readonly sentAt: number },
): boolean {
  const isNewestFirst = tasks.every(({ createdAt }, at) => createdAt <= (tasks[at - 1]?.createdAt ?? createdAt))
  return isNewestFirst && (tasks.at(-1)?.createdAt ?? sentAt) < sentAt - clockSkewMs
}
