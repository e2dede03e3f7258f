import type { Json } from '../base/json.ts'
import type { Vector } from '../capabilities/embeddings.ts'

/** Raw little-endian float32, which is the byte order of every machine the gateway runs on. */
export function toBase64(vector: Vector): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
}

/** Reads a list of numbers, or the same in base64. Anything else, and a vector with an infinite value, is undefined. */
export function vectorIn(value: Json | undefined): Vector | undefined {
  const vector = typeof value === 'string' ? fromBase64(value) : fromNumbers(value)
  return vector !== undefined && isFinite(vector) ? vector : undefined
}

/** Zero times a finite number is zero, else NaN. Takes a tenth of the time of `every` on millions of numbers. */
function isFinite(vector: Vector): boolean {
  let zero = 0
  for (let at = 0; at < vector.length; at++) zero += (vector[at] ?? 0) * 0
  return zero === 0
}

function fromBase64(base64: string): Vector {
  const bytes = Buffer.from(base64, 'base64')
  // A copy, because small Buffers are slices of a shared pool, at offsets where a Float32Array may not start.
  const whole = new Uint8Array(bytes.length - (bytes.length % 4))
  whole.set(bytes.subarray(0, whole.length))
  return new Float32Array(whole.buffer)
}

function fromNumbers(items: Json | undefined): Vector | undefined {
  if (!Array.isArray(items)) return undefined
  const vector = new Float32Array(items.length)
  for (let at = 0; at < items.length; at++) {
    const item: unknown = items[at]
    if (typeof item !== 'number') return undefined
    vector[at] = item
  }
  return vector
}

/** The same direction with length one. The zero vector stays as it is. */
export function normalised(vector: Vector): Vector {
  // Not `Math.hypot(...vector)`, which is slow and puts thousands of arguments on the stack.
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  return length === 0 ? vector : vector.map((value) => value / length)
}

/**
 * The vector with the wanted number of dimensions, or undefined where it has too few. A vendor that cannot shorten
 * vectors gives all dimensions; models whose vectors can be shortened put the most important dimensions first.
 */
export function withDimensions(vector: Vector, dimensions: number | undefined): Vector | undefined {
  const { length } = vector
  if (length === 0) return undefined
  if (dimensions === undefined || length === dimensions) return vector
  return length < dimensions ? undefined : normalised(vector.slice(0, dimensions))
}
