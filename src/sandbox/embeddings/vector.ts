import { hashText } from '../seeded.ts'

/**
 * A unit vector for the tokens of a text. Every token adds a direction of its own, so texts that share words lie near
 * each other, and the order of words does not matter. A shorter vector is the normalised beginning of a longer one.
 * Values are float32, so that base64 and numbers agree.
 */
export function embed(tokens: readonly string[], dimensions: number): Float32Array {
  const hashes = tokens.map((token) => hashText(token.trim().toLowerCase()))
  const sums = new Float64Array(dimensions)
  for (const hash of hashes) {
    for (let at = 0; at < dimensions; at += 1) sums[at] = (sums[at] ?? 0) + direction(hash, at)
  }
  return normalise(sums)
}

/** A value between -1 and 1 for one token and one dimension. This loop runs for all tokens of all texts of a batch. */
function direction(hash: number, at: number): number {
  const mixed = Math.imul(hash ^ Math.imul(at + 1, 0x9e3779b1), 0x85ebca6b)
  return Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35) / 2 ** 31
}

function normalise(values: Float64Array): Float32Array {
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0)) || 1
  return Float32Array.from(values, (value) => value / length)
}

/** Raw float32, low byte first, without a header. */
export function toBase64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
}
