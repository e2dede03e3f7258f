import { hkdfSync } from 'node:crypto'
import { sealText, unsealText } from '../base/seal.ts'

/**
 * Kept answers are readable only to whoever brings the Idempotency-Key again: the key that seals them derives from it,
 * and it is not stored. The installation's secret salts it, so that a guessable key does not help against a stolen table.
 */
export function seal(text: string, idempotencyKey: string, secret: Uint8Array): string {
  return sealText(text, sealKey(idempotencyKey, secret))
}

export function unseal(sealed: string, idempotencyKey: string, secret: Uint8Array): string {
  return unsealText(sealed, sealKey(idempotencyKey, secret))
}

function sealKey(idempotencyKey: string, secret: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', idempotencyKey, secret, 'turnpike/idempotent-answer', 32))
}
