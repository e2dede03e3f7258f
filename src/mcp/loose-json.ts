/** Reads an answer or an event of one of our own paths; undefined if it is not a JSON object, such as `[DONE]`. */
export function looseJson<T extends object>(text: string): Readonly<T> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as T) : undefined
  } catch {
    return undefined
  }
}
