import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { BoundedMap } from './bounded-map.ts'

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

// Customers name their users, and the same ones come again and again.
const labelsMax = 10_000
// A longer one is no name, and ten thousand of those would be the memory.
const keptCharactersMax = 200

/** A text that tells nothing of the one it stands for, and is always the same for it. */
export type Label = (text: string) => string

export function labelBy(mac: Mac): Label {
  const known = new BoundedMap<string, string>(labelsMax)
  return (text) => {
    const remembered = known.get(text)
    if (remembered !== undefined) return remembered
    const label = mac(text).toString('base64url')
    if (text.length <= keptCharactersMax) known.set(text, label)
    return label
  }
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
