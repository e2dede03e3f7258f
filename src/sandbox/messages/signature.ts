import { createHmac } from 'node:crypto'

// Not really secret, and the same after a restart, so that an old conversation stays valid.
const secret = 'the sandbox signs its thoughts'

/**
 * Proves that a thinking block is the vendor's own: a number that tells turns apart, and a MAC over that number and the
 * text as it was shown. Where the text was omitted, the signature covers the empty text.
 */
export function signThinking(text: string, seed: number): string {
  const turn = (seed >>> 0).toString(16).padStart(8, '0')
  return `Eq${turn}${macOf(`${turn}:${text}`)}`
}

export function isOurThinking(text: string, signature: string): boolean {
  return signature.startsWith('Eq') && signature.slice(10) === macOf(`${signature.slice(2, 10)}:${text}`)
}

/** The data of a redacted thinking block, which is nothing but its own signature. */
export function redactThinking(seed: number): string {
  return signThinking('redacted', seed)
}

export function isOurRedactedThinking(data: string): boolean {
  return isOurThinking('redacted', data)
}

function macOf(text: string): string {
  return createHmac('sha256', secret).update(text).digest('base64')
}
