import { tokenEnd } from './tokens.ts'

/** The running token count and fingerprint of a prompt. Each request creates one and feeds it its texts in order. */
export type Prompt = {
  tokens: number
  /** Two independent hashes of everything fed. `hash` seeds the answer, and both together name a cached prefix. */
  hash: number
  secondHash: number
  /** The fingerprint after every 128 tokens, used by the prompt cache. */
  readonly blocks: number[]
}

export const blockTokens = 128

export function createPrompt(): Prompt {
  return { tokens: 0, hash: 0x811c9dc5, secondHash: 0x9747b28c, blocks: [] }
}

/** Counts a text and mixes it in. One loop does both, since it runs over every byte of every prompt. */
export function feedText(prompt: Prompt, text: string): void {
  let { tokens, hash, secondHash } = prompt
  let at = 0
  while (at < text.length) {
    const end = tokenEnd(text, at)
    for (; at < end; at += 1) {
      const code = text.charCodeAt(at)
      hash = Math.imul(hash ^ code, 0x01000193)
      secondHash = Math.imul(secondHash ^ code, 0x5bd1e995)
    }
    tokens += 1
    if (tokens % blockTokens === 0) prompt.blocks.push(fingerprint(hash, secondHash))
  }
  prompt.tokens = tokens
  prompt.hash = hash
  prompt.secondHash = secondHash
}

/**
 * Counts what has no text, such as a message's frame or an image. `label` tells such items apart in the fingerprint.
 */
export function feedFixed(prompt: Prompt, label: string, tokens: number): void {
  for (let index = 0; index < label.length; index += 1) {
    prompt.hash = Math.imul(prompt.hash ^ label.charCodeAt(index), 0x01000193)
    prompt.secondHash = Math.imul(prompt.secondHash ^ label.charCodeAt(index), 0x5bd1e995)
  }
  for (let left = tokens; left > 0; left -= 1) {
    prompt.tokens += 1
    if (prompt.tokens % blockTokens === 0) prompt.blocks.push(fingerprint(prompt.hash, prompt.secondHash))
  }
}

/**
 * Counts an image or a file by its address or content. Media are told apart by their length and both ends, because
 * hashing megabytes of base64 would slow every such request.
 */
export function feedMedia(prompt: Prompt, source: string, tokens: number): void {
  feedFixed(prompt, `${source.length}:${source.slice(0, 256)}:${source.slice(-256)}`, tokens)
}

/** The fingerprint of everything fed so far. */
export function fingerprintOf({ hash, secondHash }: Prompt): number {
  return fingerprint(hash, secondHash)
}

/** Combines 53 bits of the two hashes, the most that a number holds exactly. */
function fingerprint(hash: number, secondHash: number): number {
  return (hash >>> 0) * 2 ** 21 + (secondHash >>> 11)
}
