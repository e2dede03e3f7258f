import { hkdfSync } from 'node:crypto'
import { sealBytes, sealText, unsealBytes, unsealText } from '../base/seal.ts'

/**
 * Stored answers can be read only with the client's Idempotency-Key: the key that seals them derives from it, and it is
 * not stored. The installation's secret is the salt, so that a guessable Idempotency-Key does not open a stolen table.
 */
export type Seal = {
  seal(text: string): string
  unseal(sealed: string): string
  sealBytes(bytes: Uint8Array): Promise<Uint8Array>
  unsealBytes(sealed: Uint8Array): Promise<Uint8Array>
}

export function sealUnder(idempotencyKey: string, secret: Uint8Array): Seal {
  const key = Buffer.from(hkdfSync('sha256', idempotencyKey, secret, 'turnpike/idempotent-answer', 32))
  return {
    seal: (text) => sealText(text, key),
    unseal: (sealed) => unsealText(sealed, key),
    sealBytes: (bytes) => sealBytes(bytes, key),
    unsealBytes: (sealed) => unsealBytes(sealed, key),
  }
}
