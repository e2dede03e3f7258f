/** For tests in which no process may be told to end. */
export function noFatal(why: unknown, cause?: unknown): never {
  throw new Error(`told to end: ${String(why)}`, { cause })
}
