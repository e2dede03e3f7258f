import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

const cipher = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/**
 * Kept answers are readable only to whoever brings the Idempotency-Key again: the key that seals them derives from it,
 * and it is not stored. The installation's secret salts it, so that a guessable key does not help against a stolen table.
 */
export function seal(text: string, idempotencyKey: string, secret: Uint8Array): string {
  const nonce = randomBytes(nonceBytes)
  const sealing = createCipheriv(cipher, sealKey(idempotencyKey, secret), nonce)
  const sealed = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()])
  return Buffer.concat([nonce, sealing.getAuthTag(), sealed]).toString('base64')
}

export function unseal(sealed: string, idempotencyKey: string, secret: Uint8Array): string {
  const bytes = Buffer.from(sealed, 'base64')
  const opening = createDecipheriv(cipher, sealKey(idempotencyKey, secret), bytes.subarray(0, nonceBytes))
  opening.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
  return Buffer.concat([opening.update(bytes.subarray(nonceBytes + tagBytes)), opening.final()]).toString('utf8')
}

function sealKey(idempotencyKey: string, secret: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', idempotencyKey, secret, 'turnpike/idempotent-answer', 32))
}
