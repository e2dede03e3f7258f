import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { unshared } from './bytes.ts'

const cipher = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/**
 * Encrypts and authenticates a text. `about` names what it belongs to and is not stored: a sealed text that is moved to
 * another row does not open there.
 */
export function sealText(text: string, key: Uint8Array, about = ''): string {
  const nonce = randomBytes(nonceBytes)
  const sealing = createCipheriv(cipher, key, nonce).setAAD(Buffer.from(about))
  const sealed = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()])
  return Buffer.concat([nonce, sealing.getAuthTag(), sealed]).toString('base64')
}

/** Throws if the key is wrong, or if the text or `about` was changed. */
export function unsealText(sealed: string, key: Uint8Array, about = ''): string {
  const bytes = Buffer.from(sealed, 'base64')
  const opening = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
  opening.setAAD(Buffer.from(about)).setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
  return Buffer.concat([opening.update(bytes.subarray(nonceBytes + tagBytes)), opening.final()]).toString('utf8')
}

/** The same for long contents: takes and gives bytes, and encrypts off the event loop, so that other requests go on. */
export async function sealBytes(bytes: Uint8Array, key: Uint8Array): Promise<Uint8Array> {
  const nonce = randomBytes(nonceBytes)
  const sealed = await crypto.subtle.encrypt(gcm(nonce), await imported(key, 'encrypt'), unshared(bytes))
  return Buffer.concat([nonce, new Uint8Array(sealed)])
}

/** Throws if the key is wrong, or if the bytes were changed. */
export async function unsealBytes(sealed: Uint8Array, key: Uint8Array): Promise<Uint8Array> {
  const nonce = sealed.subarray(0, nonceBytes)
  const opening = await imported(key, 'decrypt')
  const bytes = await crypto.subtle.decrypt(gcm(nonce), opening, unshared(sealed.subarray(nonceBytes)))
  return new Uint8Array(bytes)
}

function gcm(nonce: Uint8Array) {
  return { name: 'AES-GCM', iv: unshared(nonce), tagLength: tagBytes * 8 }
}

function imported(key: Uint8Array, use: 'encrypt' | 'decrypt'): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', unshared(key), 'AES-GCM', false, [use])
}
