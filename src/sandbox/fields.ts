/** A JSON object whose fields have not been checked. */
export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object in a JSON text; undefined if the text is not JSON or holds something else. */
export function parseFields(text: string): Fields | undefined {
  const parsed = parsedOr(text, undefined)
  return isFields(parsed) ? parsed : undefined
}

/** What a JSON text holds, or else the given value: for a text that is not JSON, such as one that was cut short. */
export function parsedOr(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return otherwise
  }
}

/** Vendors treat an explicit null as absent almost everywhere. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

export function fieldsIn(value: unknown): Fields {
  return isFields(value) ? value : {}
}

export function itemsIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A given value for use within an error message. Does not call the value's own `toString`, which may be anything. */
export function shown(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'None')
}

/** What a table has under a name that a caller wrote, and never what every object inherits, such as `constructor`. */
export function ownIn<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

/** A part of a URL without its escapes. One that cannot be decoded is left as it is: vendors do not fail on it. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** All text of a message's content, whether it is a string or a list of parts. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  let text = ''
  for (const part of itemsIn(content)) {
    const fields = fieldsIn(part)
    const partText = textIn(fields.text) || textIn(fields.refusal)
    if (partText !== '') text += text === '' ? partText : `\n${partText}`
  }
  return text
}
