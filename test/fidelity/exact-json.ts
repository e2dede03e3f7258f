/** JSON whose numbers keep their text if a double cannot hold them. Shares no code with the gateway's parser. */
export type Value = string | number | boolean | null | readonly Value[] | Fields
export type Fields = { readonly [name: string]: Value | undefined }

/** `JSON.rawJSON` is in the runtime, not yet in the library types. */
const exact = JSON as unknown as {
  rawJSON(text: string): Value
  isRawJSON(value: unknown): value is { readonly rawJSON: string }
}

export function parse(text: string): Value {
  return JSON.parse(text, (_key, value: Value, context?: { source?: string }) => {
    const source = context?.source
    return typeof value === 'number' && source !== undefined && String(value) !== source && !isSame(value, source)
      ? exact.rawJSON(source)
      : value
  }) as Value
}

/** `1.0` and `1e2` are only other spellings of a double; with 16 digits or more a double may differ. */
function isSame(value: number, source: string): boolean {
  return source.replaceAll(/\D/g, '').length < 16 && Number.isFinite(value)
}

export function isFields(value: Value | undefined): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !exact.isRawJSON(value)
}

export function fieldsIn(value: Value | undefined): Fields {
  return isFields(value) ? value : {}
}

export function itemsIn(value: Value | undefined): readonly Value[] {
  return Array.isArray(value) ? (value as readonly Value[]) : []
}

export function objectsIn(value: Value | undefined): readonly Fields[] {
  return itemsIn(value).filter(isFields)
}

export function textIn(value: Value | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** Replaces every value inside and then the value itself, from the leaves up. */
export function replace(value: Value, by: (value: Value, name: string) => Value, name = ''): Value {
  if (Array.isArray(value)) {
    return by(
      itemsIn(value).map((item) => replace(item, by)),
      name,
    )
  }
  if (!isFields(value)) return by(value, name)
  const replaced = Object.entries(value).map(([key, inner]) => [key, replace(inner ?? null, by, key)])
  return by(Object.fromEntries(replaced) as Fields, name)
}

/** The same text for the same value, however its keys are ordered. */
export function canonical(value: Value | undefined): string {
  if (Array.isArray(value)) return `[${itemsIn(value).map(canonical).join(',')}]`
  if (!isFields(value)) return JSON.stringify(value ?? null)
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
}

const lineMax = 118

/** Formatted for people: whatever fits is on one line. */
export function pretty(value: Value | undefined, indent = ''): string {
  if (!isFields(value) && !Array.isArray(value)) return JSON.stringify(value ?? null)
  const inner = `${indent}  `
  const isList = Array.isArray(value)
  const items = (at: string) =>
    isList
      ? itemsIn(value).map((item) => pretty(item, at))
      : Object.entries(fieldsIn(value)).map(([key, item]) => `${JSON.stringify(key)}: ${pretty(item, at)}`)
  const [open, close] = isList ? ['[', ']'] : ['{', '}']
  const space = isList ? '' : ' '
  const written = items('')
  if (written.length === 0) return open + close
  const line = `${open}${space}${written.join(', ')}${space}${close}`
  if (!line.includes('\n') && line.length + indent.length <= lineMax) return line
  return `${open}\n${items(inner)
    .map((item) => inner + item)
    .join(',\n')}\n${indent}${close}`
}
