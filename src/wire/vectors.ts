import type { Vector } from '../capabilities/embeddings.ts'

/** Raw float32, the lowest byte first: as every machine we run on keeps it. */
export function toBase64(vector: Vector): string {
  if (typeof vector === 'string') return vector
  return Buffer.from(Float32Array.from(vector).buffer).toString('base64')
}

export function toNumbers(vector: Vector): readonly number[] {
  if (typeof vector !== 'string') return vector
  const bytes = Buffer.from(vector, 'base64')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, at) => view.getFloat32(at * 4, true))
}

export function lengthOf(vector: Vector): number {
  return typeof vector === 'string' ? Math.floor(Buffer.byteLength(vector, 'base64') / 4) : vector.length
}

/** The same direction with length one. A vector of nothing stays what it is. */
export function normalised(vector: readonly number[]): readonly number[] {
  const length = Math.hypot(...vector)
  return length === 0 || !Number.isFinite(length) ? vector : vector.map((value) => value / length)
}

/**
 * A vector of so many dimensions. A vendor that does not know how to shorten gives all it has, and the models that can
 * be shortened have what matters in front; undefined where there are too few.
 */
export function fitted(vector: Vector, dimensions: number | undefined): Vector | undefined {
  const length = lengthOf(vector)
  if (length === 0) return undefined
  if (dimensions === undefined || length === dimensions) return vector
  return length < dimensions ? undefined : normalised(toNumbers(vector).slice(0, dimensions))
}
