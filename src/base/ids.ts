import { randomFillSync } from 'node:crypto'

export type RequestId = string & { readonly __id: 'request' }
export type AttemptId = string & { readonly __id: 'attempt' }

const idBytes = 16 // 128 bits: ids cannot be guessed
const pool = Buffer.alloc(256 * idBytes)
let used = pool.length

/** 32 hex digits. Random bytes are drawn in bulk: a system call per id would cost more than the rest of the edge. */
function randomHex(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const id = pool.toString('hex', used, used + idBytes)
  used += idBytes
  return id
}

export function newRequestId(): RequestId {
  return `req_${randomHex()}` as RequestId
}

export function newAttemptId(): AttemptId {
  return `att_${randomHex()}` as AttemptId
}

export function newId(prefix: 'acc' | 'key' | 'txn' | 'hold' | 'node'): string {
  return `${prefix}_${randomHex()}`
}

let lastOrdered = 0

/** Ids that sort as they were made, also within one millisecond: for records that are read in order of their making. */
export function newOrderedId(prefix: 'aud', now: number): string {
  // Sixteen times finer than milliseconds is finer than anybody makes them; a burst runs ahead of the clock for a while.
  lastOrdered = Math.max(lastOrdered + 1, now * 16)
  return `${prefix}_${lastOrdered.toString(16).padStart(14, '0')}${randomHex().slice(0, 18)}`
}
