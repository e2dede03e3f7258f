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

export function newId(prefix: 'acc' | 'key' | 'txn' | 'hold' | 'aud' | 'node'): string {
  return `${prefix}_${randomHex()}`
}
