import { type Fields, fieldsIn, isFields, isGiven, itemsIn, shown } from './fields.ts'

/** Why the top level of a schema, of arguments or of an answer, is not an object. */
export function whyNoObject({ type }: Fields): string | undefined {
  if (type === 'object') return undefined
  return `schema must be a JSON Schema of 'type: "object"', got 'type: "${isGiven(type) ? shown(type) : 'None'}"'.`
}

const unicodeProperty = /(?<!\\)(?:\\\\)*\\p\{/i

/** Why OpenAI refuses a schema for one of its patterns, strict or not: Python reads them, and has no `\p{…}`. */
export function whyNoRegex(schema: unknown): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined
  for (const [name, value] of Object.entries(schema)) {
    if (name === 'pattern' && typeof value === 'string' && unicodeProperty.test(value)) {
      return `'${value}' is not a 'regex'.`
    }
    const why = whyNoRegex(value)
    if (why !== undefined) return why
  }
  return undefined
}

const notPermitted = [
  'allOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
] as const

/** Why OpenAI's strict mode refuses a schema. Every object must list all its properties and require each of them. */
export function whyNotStrict(schema: Fields, at = ''): string | undefined {
  const where = `In context=(${at}), `
  const refused = notPermitted.find((name) => schema[name] !== undefined)
  if (refused !== undefined) return `${where}'${refused}' is not permitted.`
  const properties = fieldsIn(schema.properties)
  if (schema.type === 'object' || isFields(schema.properties)) {
    if (schema.additionalProperties !== false) {
      return `${where}'additionalProperties' is required to be supplied and to be false.`
    }
    const lacking = Object.keys(properties).find((name) => !itemsIn(schema.required).includes(name))
    if (lacking !== undefined) {
      return `${where}'required' is required to be supplied and to be an array including every key in properties. Missing '${lacking}'.`
    }
  }
  const inside = [
    ...Object.entries(properties),
    ...Object.entries(fieldsIn(schema.$defs)),
    ...itemsIn(schema.anyOf).map((part, index) => [String(index), part] as const),
    ['items', schema.items] as const,
  ]
  for (const [name, part] of inside) {
    const why = isFields(part) ? whyNotStrict(part, `${at}/${name}`) : undefined
    if (why !== undefined) return why
  }
  return undefined
}
