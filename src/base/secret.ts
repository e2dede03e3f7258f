import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

/** One installation secret, many uses: each derives its own key under its own label, so that none can stand for another. */
export type SecretUse =
  | 'key-digest'
  | 'key-checksum'
  | 'tenant-label'
  | 'idempotency'
  | 'artifact-link'
  | 'webhook-secret'
  | 'tool-session'
  | 'video-callback'

export type Mac = (text: string) => Buffer

export function keyFor(secret: Uint8Array, use: SecretUse): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `turnpike/${use}`, 32))
}

export function macFor(secret: Uint8Array, use: SecretUse): Mac {
  const key = keyFor(secret, use)
  return (text) => createHmac('sha256', key).update(text).digest()
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
