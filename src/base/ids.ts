import { randomFillSync } from 'node:crypto'

export type RequestId = string & { readonly __id: 'request' }
export type AttemptId = string & { readonly __id: 'attempt' }

const timeDigits = 12
const randomBytes = 10 // 80 bits: ids cannot be guessed
const pool = Buffer.alloc(256 * randomBytes)
let poolHex = ''
let used = 0

/**
 * Random bytes are drawn and written as text in bulk: a system call per id would cost more than the rest of the edge,
 * and a call to write it as much as making the rest of the id.
 */
function randomHex(bytes: number): string {
  const digits = 2 * bytes
  if (used + digits > poolHex.length) {
    poolHex = randomFillSync(pool).toString('hex')
    used = 0
  }
  const hex = poolHex.slice(used, used + digits)
  used += digits
  return hex
}

let prefixedAt = -1
let timePrefix = ''

/**
 * 32 hex digits: the millisecond, then 80 random bits. Ids made at the same time lie side by side in every index, so
 * that a commit of five hundred records writes a few pages of it and not five hundred.
 */
function hexByTime(): string {
  const now = Date.now()
  if (now !== prefixedAt) {
    prefixedAt = now
    timePrefix = now.toString(16).padStart(timeDigits, '0')
  }
  return timePrefix + randomHex(randomBytes)
}

export function newRequestId(): RequestId {
  return `req_${hexByTime()}` as RequestId
}

const ofAttempts = 'att_'

export function newAttemptId(): AttemptId {
  return `${ofAttempts}${hexByTime()}` as AttemptId
}

/** Whether a reference may be one of our attempt ids: other users of a vendor's account name their calls, too. */
export function isAttemptId(text: string): boolean {
  return text.startsWith(ofAttempts)
}

export function newId(prefix: 'acc' | 'key' | 'txn' | 'hold' | 'node' | 'art'): string {
  return `${prefix}_${hexByTime()}`
}

let lastOrdered = 0

/** Ids that sort in the order they were made, even within one millisecond, for records that are read in that order. */
export function newOrderedId(prefix: 'aud' | 'wha' | 'whs', now: number): string {
  // No process makes sixteen of these per millisecond for long; a burst runs ahead of the clock for a while.
  lastOrdered = Math.max(lastOrdered + 1, now * 16)
  return `${prefix}_${lastOrdered.toString(16).padStart(14, '0')}${randomHex(9)}`
}

/**
 * 128 random bits and nothing else: ids of tasks and events are shown to customers and passed on, and must reveal
 * neither when they were made nor how many there are.
 */
export function newOpaqueId(prefix: 'vid' | 'evt'): string {
  return `${prefix}_${randomHex(16)}`
}
