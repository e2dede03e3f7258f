import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { invalidField } from './errors.ts'

/** The formats of each type, in the order in which the vendor lists them when it refuses another. */
const formats: Readonly<Record<string, readonly string[]>> = {
  STRING: ['enum', 'date-time'],
  NUMBER: ['float', 'double'],
  INTEGER: ['int32', 'int64'],
}

/** The vendor's rules on a schema. The names of its fields were checked when it was read. */
export function checkSchema(schema: Fields, path: string): void {
  const type = textIn(schema.type)
  const anyOf = itemsIn(schema.anyOf).map(fieldsIn)
  const properties = Object.entries(fieldsIn(schema.properties))
  if (type === '' && anyOf.length === 0) throw invalidField(`${path}.type`, 'must be specified')
  if (itemsIn(schema.enum).length > 0 && type !== 'STRING') {
    throw invalidField(`${path}.enum`, 'only allowed for STRING type')
  }
  if (itemsIn(schema.enum).includes('')) throw invalidField(`${path}.enum[0]`, 'cannot be empty')
  const known = formats[type]
  if (isGiven(schema.format) && known && !known.includes(textIn(schema.format))) {
    const list = known.map((name) => `'${name}'`).join(' and ')
    throw invalidField(`${path}.format`, `only ${list} are supported for ${type} type`)
  }
  if (type === 'OBJECT' && properties.length === 0) {
    throw invalidField(`${path}.properties`, 'should be non-empty for OBJECT type')
  }
  if (type === 'ARRAY' && !isGiven(schema.items)) throw invalidField(`${path}.items`, 'missing field.')
  for (const [index, name] of itemsIn(schema.required).entries()) {
    if (properties.some(([property]) => property === name)) continue
    throw invalidField(`${path}.required[${index}]`, 'property is not defined')
  }
  for (const [name, property] of properties) checkSchema(fieldsIn(property), `${path}.properties[${name}]`)
  if (isGiven(schema.items)) checkSchema(fieldsIn(schema.items), `${path}.items`)
  for (const [index, branch] of anyOf.entries()) checkSchema(branch, `${path}.any_of[${index}]`)
}

/** The same schema as JSON Schema: types in lower case, properties in the requested order. */
export function toJsonSchema(schema: Fields): Fields {
  const { type, format, properties, propertyOrdering, items, anyOf, nullable: _, ...rest } = schema
  const known = fieldsIn(properties)
  const order = itemsIn(propertyOrdering)
    .map(textIn)
    .filter((name) => Object.hasOwn(known, name))
  const names = [...new Set([...order, ...Object.keys(known)])]
  return {
    ...rest,
    ...(isGiven(type) && { type: textIn(type).toLowerCase() }),
    ...(format === 'date-time' && { format }),
    ...(isGiven(properties) && {
      properties: Object.fromEntries(names.map((name) => [name, toJsonSchema(fieldsIn(known[name]))])),
    }),
    ...(isGiven(items) && { items: toJsonSchema(fieldsIn(items)) }),
    ...(isGiven(anyOf) && { anyOf: itemsIn(anyOf).map((branch) => toJsonSchema(fieldsIn(branch))) }),
  }
}
