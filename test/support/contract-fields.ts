/** The part of a contract's schema that matters here. */
type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly minItems?: number
  readonly minimum?: number
  readonly additionalProperties?: Schema | boolean
}

export type Contract = {
  readonly paths: Readonly<Record<string, { readonly post?: { readonly requestBody?: { content: Contents } } }>>
}
type Contents = Readonly<Record<string, { readonly schema: Schema }>>

/** A text field of a request. `put` makes the smallest body with a text in that field. */
export type TextField = { readonly at: string; readonly put: (text: string) => unknown }

/** No body of the contract nests deeper. Recursive schemas are followed once. */
const depthMax = 12

/** Every text field of an operation's body, once for each form of the body around it. */
export function textFieldsOf(contract: Contract, path: string): TextField[] {
  const content = contract.paths[path]?.post?.requestBody?.content ?? {}
  const [schema] = Object.values(content).map((one) => one.schema)
  if (schema === undefined) throw new Error(`the contract has no body for ${path}`)
  const found = fieldsIn(contract, schema, [])
  return [...new Map(found.map((field) => [`${field.at} ${JSON.stringify(field.put('x'))}`, field])).values()]
}

function fieldsIn(contract: Contract, schema: Schema, within: readonly string[]): TextField[] {
  if (schema.$ref !== undefined) {
    const isAgain = within.includes(schema.$ref)
    return isAgain ? [] : fieldsIn(contract, lookUp(contract, schema.$ref), [...within, schema.$ref])
  }
  if (within.length > depthMax) return []
  const inside = (part: Schema) => fieldsIn(contract, part, within)
  const fields: TextField[] = isText(schema) ? [{ at: '', put: (text) => text }] : []
  for (const branch of branchesOf(schema)) fields.push(...inside(branch))
  for (const [name, part] of Object.entries(schema.properties ?? {})) {
    for (const { at, put } of inside(part)) {
      fields.push({ at: `.${name}${at}`, put: (text) => ({ ...leastFields(contract, schema), [name]: put(text) }) })
    }
  }
  if (schema.items !== undefined) {
    for (const { at, put } of inside(schema.items)) fields.push({ at: `[]${at}`, put: (text) => [put(text)] })
  }
  if (typeof schema.additionalProperties === 'object') {
    for (const { at, put } of inside(schema.additionalProperties)) {
      fields.push({ at: `.*${at}`, put: (text) => ({ some: put(text) }) })
      fields.push({ at: '.(name)', put: (text) => ({ [text]: put('x') }) })
    }
  }
  return fields
}

/** Enums and constants count too, because the gateway reads their text before it knows that it is not one of them. */
function isText({ type, const: only, enum: choices }: Schema): boolean {
  return [type].flat().includes('string') || [only, ...(choices ?? [])].some((value) => typeof value === 'string')
}

function branchesOf({ anyOf = [], oneOf = [], allOf = [] }: Schema): readonly Schema[] {
  return [...anyOf, ...oneOf, ...allOf]
}

function lookUp(contract: Contract, reference: string): Schema {
  let found: unknown = contract
  for (const name of reference.split('/').slice(1)) found = (found as Record<string, unknown>)[name]
  return found as Schema
}

function leastFields(contract: Contract, { properties = {}, required = [] }: Schema): Record<string, unknown> {
  return Object.fromEntries(required.map((name) => [name, leastOf(contract, properties[name] ?? {})]))
}

/** The smallest value that a schema accepts. */
function leastOf(contract: Contract, schema: Schema): unknown {
  if (schema.$ref !== undefined) return leastOf(contract, lookUp(contract, schema.$ref))
  if ('const' in schema) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  const [branch] = branchesOf(schema)
  if (branch !== undefined) return leastOf(contract, branch)
  const [type = 'string'] = [schema.type].flat()
  switch (type) {
    case 'object':
      return leastFields(contract, schema)
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => leastOf(contract, schema.items ?? {}))
    case 'integer':
    case 'number':
      return Math.max(1, schema.minimum ?? 1)
    case 'boolean':
      return false
    default:
      return 'x'
  }
}
