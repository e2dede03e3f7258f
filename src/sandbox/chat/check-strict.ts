import { badRequest } from './errors.ts'
import { type Fields, fieldsIn, isFields, itemsIn, textIn } from '../fields.ts'

function whyNotStrict(schema: Fields, at: string): string | undefined {
  const where = `In context=(${at}), `
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

/** A schema that the answer is held to names everything an object may have, and requires all of it. */
export function checkStrictSchemas({ tools, response_format: format }: Fields): void {
  for (const [index, tool] of itemsIn(tools).entries()) {
    const { name, strict, parameters } = fieldsIn(fieldsIn(tool).function)
    const why = strict === true ? whyNotStrict(fieldsIn(parameters), '') : undefined
    if (why === undefined) continue
    const message = `Invalid schema for function '${textIn(name)}': ${why}`
    throw badRequest(message, `tools[${index}].function.parameters`, 'invalid_function_parameters')
  }
  const { name, strict, schema } = fieldsIn(fieldsIn(format).json_schema)
  const why = strict === true ? whyNotStrict(fieldsIn(schema), '') : undefined
  if (why !== undefined)
    throw badRequest(`Invalid schema for response_format '${textIn(name)}': ${why}`, 'response_format')
}
