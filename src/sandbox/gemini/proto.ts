import { type Fields, isFields, isGiven, parsedOr } from '../fields.ts'
import { invalid, invalidPayload } from './errors.ts'

/**
 * Google's JSON is a mapping of protocol buffers, and its errors show that: they name fields and list all faults at
 * once. A field may be spelled in camel or snake case, an enum in any case, a number as a string, and a list of one as
 * its element.
 */
export type Kind =
  | { readonly type: 'scalar'; readonly name: Scalar }
  | { readonly type: 'struct' | 'value' }
  | { readonly type: 'enum'; readonly name: string; readonly values: readonly string[] }
  | { readonly type: 'list' | 'map'; readonly of: Kind }
  | Message

export type Message = {
  readonly type: 'message'
  readonly name: string
  /** Finds a field by either spelling. Looked up lazily, because a schema contains schemas. */
  fieldOf(name: string): Field | undefined
}

type Scalar = 'string' | 'bool' | 'int32' | 'int64' | 'float' | 'bytes'

type Field = { readonly name: string; readonly kind: Kind; readonly oneof: string | undefined }

export const string: Kind = { type: 'scalar', name: 'string' }
export const bool: Kind = { type: 'scalar', name: 'bool' }
export const int32: Kind = { type: 'scalar', name: 'int32' }
export const int64: Kind = { type: 'scalar', name: 'int64' }
export const float: Kind = { type: 'scalar', name: 'float' }
export const bytes: Kind = { type: 'scalar', name: 'bytes' }
export const struct: Kind = { type: 'struct' }
export const value: Kind = { type: 'value' }
export const list = (of: Kind): Kind => ({ type: 'list', of })
export const map = (of: Kind): Kind => ({ type: 'map', of })
export const oneOf = (name: string, ...values: readonly string[]): Kind => ({ type: 'enum', name, values })

/** `oneof` names fields of which only one may be set. */
export function message(
  name: string,
  fields: () => Readonly<Record<string, Kind>>,
  oneof: { name: string; fields: readonly string[] } = { name: '', fields: [] },
): Message {
  let known: Map<string, Field> | undefined
  return {
    type: 'message',
    name,
    fieldOf(spelled) {
      known ??= new Map(
        Object.entries(fields()).flatMap(([name, kind]) => {
          const field = { name, kind, oneof: oneof.fields.includes(name) ? oneof.name : undefined }
          return [name, snakeCase(name)].map((spelling): [string, Field] => [spelling, field])
        }),
      )
      return known.get(spelled)
    },
  }
}

type Violation = { field: string; description: string }

// Includes inline media; larger media are uploaded as files.
const requestBytesMax = 20 * 1024 * 1024

/** The request with its fields in camel case. Unknown fields are refused. */
export function readMessage(text: string, expected: Message): Fields {
  if (Buffer.byteLength(text) > requestBytesMax) {
    throw invalid(`Request payload size exceeds the limit: ${requestBytesMax} bytes.`)
  }
  const parsed = parsedOr(text, undefined)
  if (parsed === undefined) {
    throw invalid(`Invalid JSON payload received. Unexpected token.\n${text.slice(0, 40)}\n^`)
  }
  if (!isFields(parsed)) throw invalid('Invalid JSON payload received. Root element must be a message.')
  const violations: Violation[] = []
  const read = readFields(parsed, expected, '', violations)
  if (violations.length > 0) throw invalidPayload(violations)
  return read
}

function readFields(given: Fields, expected: Message, path: string, violations: Violation[]): Fields {
  const read: Record<string, unknown> = {}
  const chosen = new Set<string>()
  const where = path === '' ? '' : ` at '${path}'`
  const complain = (name: string, why: string): void => {
    const description = `Invalid JSON payload received. Unknown name ${JSON.stringify(name)}${where}: ${why}`
    violations.push({ field: path, description })
  }
  for (const [name, item] of Object.entries(given)) {
    const field = expected.fieldOf(name)
    if (field === undefined) {
      complain(name, 'Cannot find field.')
      continue
    }
    if (!isGiven(item)) continue
    if (Array.isArray(item) && !['list', 'value', 'struct'].includes(field.kind.type)) {
      complain(name, 'Proto field is not repeating, cannot start list.')
      continue
    }
    if (field.oneof !== undefined && chosen.has(field.oneof)) {
      const why = `oneof field '${field.oneof}' is already set. Cannot set '${name}'`
      violations.push({ field: path, description: `Invalid value at '${path}' (oneof), ${why}` })
    }
    if (field.oneof !== undefined) chosen.add(field.oneof)
    const at = path === '' ? snakeCase(name) : `${path}.${snakeCase(name)}`
    read[field.name] = readValue(item, field.kind, at, violations)
  }
  return read
}

function readValue(item: unknown, kind: Kind, at: string, violations: Violation[]): unknown {
  const refuse = (type: string, why = shortened(JSON.stringify(item))): undefined => {
    violations.push({ field: at, description: `Invalid value at '${at}' (${type}), ${why}` })
  }
  switch (kind.type) {
    case 'message':
      return isFields(item) ? readFields(item, kind, at, violations) : refuse(googleType(kind.name))
    case 'list':
      return (Array.isArray(item) ? item : [item]).map((one: unknown, index) =>
        readValue(one, kind.of, `${at}[${index}]`, violations),
      )
    case 'map':
      if (!isFields(item)) return refuse('map')
      return Object.fromEntries(
        Object.entries(item).map(([key, one], index) => [
          key,
          readValue(one, kind.of, `${at}[${index}].value`, violations),
        ]),
      )
    case 'enum':
      return readEnum(item, kind.values) ?? refuse(googleType(kind.name))
    case 'struct':
      return isFields(item) ? item : refuse('type.googleapis.com/google.protobuf.Struct')
    case 'value':
      return item
    case 'scalar': {
      const read = readScalar(item, kind.name)
      if (read !== undefined) return read
      const isText = kind.name === 'bytes' && typeof item === 'string'
      return refuse(
        `TYPE_${kind.name.toUpperCase()}`,
        isText ? `Base64 decoding failed for ${shortened(JSON.stringify(item))}` : undefined,
      )
    }
  }
}

function readEnum(item: unknown, values: readonly string[]): string | undefined {
  return typeof item === 'string' ? values.find((name) => name === item.toUpperCase()) : undefined
}

// Both base64 alphabets are accepted, with or without padding.
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/

function readScalar(item: unknown, type: Scalar): string | number | boolean | undefined {
  switch (type) {
    case 'string':
      return typeof item === 'string' ? item : undefined
    case 'bool':
      return typeof item === 'boolean' ? item : undefined
    case 'bytes':
      return typeof item === 'string' && base64.test(item) ? item : undefined
    case 'float':
      return readNumber(item)
    case 'int32':
      return readWhole(item, 2 ** 31)
    case 'int64':
      return readWhole(item, Number.MAX_SAFE_INTEGER)
  }
}

function readNumber(item: unknown): number | undefined {
  const number = typeof item === 'string' && item.trim() !== '' ? Number(item) : item
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

function readWhole(item: unknown, below: number): number | undefined {
  const number = readNumber(item)
  return number !== undefined && Number.isInteger(number) && number < below && number >= -below ? number : undefined
}

const googleType = (name: string): string => `type.googleapis.com/google.ai.generativelanguage.v1beta.${name}`

const shortened = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}...` : text)

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
