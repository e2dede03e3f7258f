/** An answer of one of our own paths, or an event of it; undefined where it is none, as `[DONE]` is. */
export function looseJson<T extends object>(text: string): Readonly<T> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as T) : undefined
  } catch {
    return undefined
  }
}
