import { randomBytes } from 'node:crypto'
import { macFor, sameBytes, type Mac } from '../base/secret.ts'

const randomKeyBytes = 32
const checksumCharacters = 6
const hintCharacters = 4
const markCharacters = 4

export type Realm = 'sandbox' | 'real' | 'admin' | 'metrics'

/** Keys as text: they are made, checked and hashed here, and stored nowhere. */
export type SecretKeys = {
  make(prefix: 'sk' | 'adm'): string
  /**
   * What is stored and looked up: an attacker with the database has no key, and no way to test a guess. The realm is
   * part of it, so that a key of one mode is unknown in the other, and an operator's key is unknown on the public port.
   */
  digest(realm: Realm, key: string): string
  /** True of keys that we made, so that a flood of invented keys is recognised without asking the database. */
  hasChecksum(key: string): boolean
  /** Tells one secret from another, but is too short to test a guess at the secret. */
  readonly mark: string
}

export function makeSecretKeys(secret: Uint8Array): SecretKeys {
  const digestMac = macFor(secret, 'key-digest')
  const checksumMac = macFor(secret, 'key-checksum')
  return {
    make(prefix) {
      const body = `${prefix}-${randomBytes(randomKeyBytes).toString('base64url')}`
      return body + checksum(checksumMac, body)
    },
    mark: checksumMac('').toString('hex').slice(0, markCharacters),
    digest: (realm, key) => digestMac(`${realm}/${key}`).toString('hex'),
    hasChecksum(key) {
      const body = key.slice(0, -checksumCharacters)
      return sameBytes(Buffer.from(key.slice(-checksumCharacters)), Buffer.from(checksum(checksumMac, body)))
    },
  }
}

/** The only part of a key that is ever shown again. */
export function hintOf(key: string): string {
  return key.slice(-hintCharacters)
}

function checksum(mac: Mac, body: string): string {
  return mac(body).toString('base64url').slice(0, checksumCharacters)
}
