import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const cipher = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/**
 * Text that only whoever has the key can read, and nobody can change. `about` says what it belongs to and is not stored:
 * a sealed text that was moved to another row does not open there.
 */
export function sealText(text: string, key: Uint8Array, about = ''): string {
  const nonce = randomBytes(nonceBytes)
  const sealing = createCipheriv(cipher, key, nonce).setAAD(Buffer.from(about))
  const sealed = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()])
  return Buffer.concat([nonce, sealing.getAuthTag(), sealed]).toString('base64')
}

/** Throws where the key is another, or the text or what it belongs to was changed. */
export function unsealText(sealed: string, key: Uint8Array, about = ''): string {
  const bytes = Buffer.from(sealed, 'base64')
  const opening = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
  opening.setAAD(Buffer.from(about)).setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
  return Buffer.concat([opening.update(bytes.subarray(nonceBytes + tagBytes)), opening.final()]).toString('utf8')
}
