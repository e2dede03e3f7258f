/** For tests in which no gateway may ask its process to end. */
export function noFatal(why: unknown, cause?: unknown): never {
  throw new Error(`told to end: ${String(why)}`, { cause })
}
