import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { BoundedMap } from './bounded-map.ts'

/** Each use of the installation's secret derives its own key under its own label, so that no key serves two uses. */
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

// Customers send the names of their users, and the same names come again and again, so their labels are cached.
const labelsMax = 10_000
// A longer text is not a user's name, and ten thousand long ones would fill the memory.
const keptCharactersMax = 200

/** Turns a text into a label that reveals nothing about it and is always the same for the same text. */
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
