import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { pickTools } from '../tool-words.ts'
import { responsesOf } from './check-contents.ts'
import { invalid, invalidField } from './errors.ts'
import { checkSchema, toJsonSchema } from './schema.ts'
import { generationOf } from './thinking.ts'

/** A declared function, with its parameters as JSON Schema. */
export type Tool = { readonly name: string; readonly schema: unknown }

const namePattern = /^[a-zA-Z_][\w.:-]{0,127}$/

/** The declared functions, after the vendor's checks. */
export function readTools(tools: readonly Fields[], model: SandboxModel): readonly Tool[] {
  const declared = tools.flatMap((tool, index) =>
    itemsIn(tool.functionDeclarations).map((declaration, at) =>
      readDeclaration(fieldsIn(declaration), `tools[${index}].function_declarations[${at}]`),
    ),
  )
  const isHosted = tools.some((tool) => Object.keys(tool).some((name) => name !== 'functionDeclarations'))
  if (isHosted && declared.length > 0 && generationOf(model) < 3) {
    throw invalid('Tool use with function calling is unsupported')
  }
  const names = new Set<string>()
  for (const { name } of declared) {
    if (names.has(name)) throw invalid(`Duplicate function declaration found: ${name}`)
    names.add(name)
  }
  return declared
}

function readDeclaration(declaration: Fields, path: string): Tool {
  const { parameters, parametersJsonSchema } = declaration
  const name = textIn(declaration.name)
  if (!namePattern.test(name)) {
    throw invalidField(
      `${path}.name`,
      '[FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.',
    )
  }
  if (isGiven(parameters) && isGiven(parametersJsonSchema)) {
    throw invalidField(`${path}.parameters`, 'parameters and parameters_json_schema are mutually exclusive.')
  }
  if (isGiven(parametersJsonSchema)) return { name, schema: parametersJsonSchema }
  if (!isGiven(parameters)) return { name, schema: { type: 'object', properties: {} } }
  checkSchema(fieldsIn(parameters), `${path}.parameters`)
  return { name, schema: toJsonSchema(fieldsIn(parameters)) }
}

type ToolAsk = {
  offered: readonly Tool[]
  /** `toolConfig.functionCallingConfig`. */
  config: Fields
  contents: readonly Fields[]
  /** The last user text without its steering words. */
  userText: string
  /** The NAME of `sandbox:tool=NAME`. */
  steered: string | undefined
}

/** The functions that the model calls, in the order offered. None means that it answers in words. */
export function chooseTools({ offered, config, contents, userText, steered }: ToolAsk): readonly Tool[] {
  const { mode } = config
  const allowed = itemsIn(config.allowedFunctionNames)
  checkAllowed(mode, allowed, offered)
  const required = allowed.length === 1 ? 'forced' : 'required'
  return pickTools({
    offered: allowed.length > 0 ? offered.filter(({ name }) => allowed.includes(name)) : offered,
    mode: mode === 'NONE' ? 'none' : mode === 'ANY' ? required : 'auto',
    answersResult: responsesOf(contents.at(-1) ?? {}).length > 0,
    userText,
    steered,
    isAlone: false,
  })
}

function checkAllowed(mode: unknown, allowed: readonly unknown[], offered: readonly Tool[]): void {
  if (mode === 'ANY' && offered.length === 0) {
    throw invalid('Function calling config is set without function_declarations.')
  }
  if (allowed.length === 0) return
  if (mode !== 'ANY' && mode !== 'VALIDATED') {
    throw invalid('Allowed function names should be set only when function calling mode is ANY or VALIDATED.')
  }
  const unknown = allowed.find((name) => !offered.some((tool) => tool.name === name))
  if (unknown === undefined) return
  throw invalid(`Allowed function name \`${textIn(unknown)}\` is not found in the function declarations.`)
}
