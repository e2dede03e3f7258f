import { type Fields, fieldsIn, itemsIn, textIn } from '../fields.ts'
import { whyNoRegex, whyNotStrict } from '../strict-schema.ts'
import { badRequest } from './errors.ts'

/** A schema marked `strict` must be one that strict mode supports, and every pattern of a tool one that can be read. */
export function checkStrictSchemas({ tools, response_format: format }: Fields): void {
  for (const [index, tool] of itemsIn(tools).entries()) {
    const { name, strict, parameters } = fieldsIn(fieldsIn(tool).function)
    const why = whyNoRegex(parameters) ?? (strict === true ? whyNotStrict(fieldsIn(parameters)) : undefined)
    if (why === undefined) continue
    const message = `Invalid schema for function '${textIn(name)}': ${why}`
    throw badRequest(message, `tools[${index}].function.parameters`, 'invalid_function_parameters')
  }
  const { name, strict, schema } = fieldsIn(fieldsIn(format).json_schema)
  const why = strict === true ? whyNotStrict(fieldsIn(schema)) : undefined
  if (why !== undefined)
    throw badRequest(`Invalid schema for response_format '${textIn(name)}': ${why}`, 'response_format')
}
