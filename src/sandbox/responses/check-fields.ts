import { badRequest, missing, quotedList, unsupported } from '../chat/errors.ts'
import { checkNumber } from '../chat/check-fields.ts'
import { type Fields, fieldsIn, isGiven, shown, textIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { whyNoObject, whyNotStrict } from '../strict-schema.ts'
import { checkKnown, checkMetadata, checkOneOf, checkSwitch, checkText, fieldsAt, listAt, nameAt } from './shape.ts'
import { effortOf, isThinking } from './thinking.ts'

const known = [
  'access_programs',
  'background',
  // Not documented, but OpenAI's command-line tool sends it with every request.
  'client_metadata',
  'context_management',
  'conversation',
  'image',
  'include',
  'input',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'model',
  'moderation',
  'parallel_tool_calls',
  'previous_response_id',
  'prompt',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'store',
  'stream',
  'stream_options',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
] as const

const includable = [
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
] as const

const identifierCharactersMax = 64

/** The vendor's rules on all fields except the input and the tools. */
export function checkFields(body: Fields, model: SandboxModel): void {
  checkKnown(body, known)
  for (const name of ['background', 'parallel_tool_calls', 'store', 'stream'] as const) checkSwitch(body[name], name)
  for (const name of ['instructions', 'user'] as const) checkText(body[name], name)
  for (const name of ['prompt_cache_key', 'safety_identifier'] as const) {
    checkText(body[name], name, identifierCharactersMax)
  }
  checkStreamOptions(body)
  checkNumbers(body, model)
  checkReasoning(body, model)
  checkInclude(body.include, model)
  checkTextConfig(body.text)
  checkMetadata(body.metadata)
  if (isGiven(body.truncation)) checkOneOf(body.truncation, ['auto', 'disabled'], 'truncation')
  if (isGiven(body.prompt_cache_retention)) {
    checkOneOf(body.prompt_cache_retention, ['in_memory', '24h'], 'prompt_cache_retention')
  }
  if (isGiven(body.service_tier)) {
    checkOneOf(body.service_tier, ['auto', 'default', 'flex', 'scale', 'priority', 'fast'], 'service_tier')
  }
  checkNothingKept(body)
}

function checkStreamOptions({ stream, stream_options: options }: Fields): void {
  if (!isGiven(options)) return
  if (stream !== true) {
    throw badRequest("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options')
  }
  const fields = fieldsAt(options, 'stream_options')
  checkKnown(fields, ['include_obfuscation'], 'stream_options')
  checkSwitch(fields.include_obfuscation, 'stream_options.include_obfuscation')
}

function checkNumbers(body: Fields, model: SandboxModel): void {
  const bounds = {
    max_output_tokens: { whole: true, least: 16, most: model.outputTokensMax },
    max_tool_calls: { whole: true, least: 1, most: Infinity },
    temperature: { whole: false, least: 0, most: 2 },
    top_p: { whole: false, least: 0, most: 1 },
    top_logprobs: { whole: true, least: 0, most: 20 },
  }
  for (const [name, limit] of Object.entries(bounds)) if (isGiven(body[name])) checkNumber(name, body[name], limit)
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

function checkReasoning(body: Fields, model: SandboxModel): void {
  const reasoning = isGiven(body.reasoning) ? fieldsAt(body.reasoning, 'reasoning') : {}
  checkKnown(reasoning, ['context', 'effort', 'generate_summary', 'mode', 'summary'], 'reasoning')
  const { effort, summary } = reasoning
  if (isGiven(effort)) checkOneOf(effort, efforts, 'reasoning.effort')
  if (isGiven(summary)) checkOneOf(summary, ['auto', 'concise', 'detailed'], 'reasoning.summary')
  for (const name of ['effort', 'summary'] as const) {
    const isTaken = model.reasoning && (name === 'summary' || model.efforts.length > 0)
    if (isGiven(reasoning[name]) && !isTaken) throw unsupported(`reasoning.${name}`)
  }
  if (isGiven(effort) && !model.efforts.includes(textIn(effort))) {
    const message = `Unsupported value: '${textIn(effort)}' is not supported with the '${model.model}' model. Supported values are: ${quotedList(model.efforts)}.`
    throw badRequest(message, 'reasoning.effort', 'unsupported_value')
  }
  if (!isThinking(model, effortOf(body, model))) return
  for (const name of ['temperature', 'top_p', 'top_logprobs'] as const) if (isGiven(body[name])) throw unsupported(name)
}

function checkInclude(include: unknown, model: SandboxModel): void {
  if (!isGiven(include)) return
  for (const [index, wanted] of listAt(include, 'include').entries()) {
    checkOneOf(wanted, includable, `include[${index}]`)
    if (wanted === 'reasoning.encrypted_content' && !model.reasoning) {
      throw badRequest('Encrypted content is not supported with this model.', 'include')
    }
  }
}

function checkTextConfig(text: unknown): void {
  if (!isGiven(text)) return
  const { format, verbosity } = fieldsAt(text, 'text')
  checkKnown(fieldsIn(text), ['format', 'verbosity'], 'text')
  if (isGiven(verbosity)) checkOneOf(verbosity, ['low', 'medium', 'high'], 'text.verbosity')
  if (isGiven(format)) checkFormat(fieldsAt(format, 'text.format'))
}

function checkFormat(format: Fields): void {
  const { type, name, schema, strict } = format
  if (!isGiven(type)) throw missing('text.format.type')
  checkOneOf(type, ['json_object', 'json_schema', 'text'], 'text.format.type')
  if (type !== 'json_schema') return checkKnown(format, ['type'], 'text.format')
  nameAt(name, 'text.format.name')
  checkKnown(format, ['type', 'name', 'description', 'schema', 'strict'], 'text.format')
  if (!isGiven(schema)) throw missing('text.format.schema')
  const shape = fieldsAt(schema, 'text.format.schema')
  const why = strict === true ? (whyNoObject(shape) ?? whyNotStrict(shape)) : undefined
  if (why === undefined) return
  throw badRequest(
    `Invalid schema for response_format '${textIn(name)}': ${why}`,
    'text.format.schema',
    'invalid_json_schema',
  )
}

/** The simulator keeps no answers, so anything that a request would continue from is not found. */
function checkNothingKept({ previous_response_id: previous, conversation, prompt, background }: Fields): void {
  if (isGiven(previous)) {
    const message = `Previous response with id '${shown(previous)}' not found.`
    throw badRequest(message, 'previous_response_id', 'previous_response_not_found')
  }
  for (const [name, value] of Object.entries({ conversation, prompt })) {
    if (!isGiven(value)) continue
    const id = textIn(value) || textIn(fieldsIn(value).id)
    throw badRequest(`${name === 'prompt' ? 'Prompt' : 'Conversation'} with id '${id}' not found.`, name)
  }
  if (background === true) throw unsupported('background')
}
