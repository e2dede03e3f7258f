import { createHmac } from 'node:crypto'

// Known to everybody who reads this, and the same after a restart: an old conversation stays good.
const secret = 'the sandbox signs its thoughts'

/**
 * What proves that a thought was ours: a number that tells turns apart and a MAC over it and the text as it was shown.
 * Where the text was left out, the signature stands for the empty one.
 */
export function signThought(text: string, seed: number): string {
  const turn = (seed >>> 0).toString(16).padStart(8, '0')
  return `Eq${turn}${macOf(`${turn}:${text}`)}`
}

export function isOurThought(text: string, signature: string): boolean {
  return signature.startsWith('Eq') && signature.slice(10) === macOf(`${signature.slice(2, 10)}:${text}`)
}

/** A thought nobody may read; its content is nothing but its own signature. */
export function hideThought(seed: number): string {
  return signThought('redacted', seed)
}

export function isOurHiddenThought(data: string): boolean {
  return isOurThought('redacted', data)
}

function macOf(text: string): string {
  return createHmac('sha256', secret).update(text).digest('base64')
}
