import type { SandboxModel } from '../model.ts'
import { isSince } from '../openai-efforts.ts'
import { emptyArray } from './check-calls-and-parts.ts'
import { checkStrictSchemas } from './check-strict.ts'
import { badRequest, missing, quotedList, unknownField, unsupported, VendorError } from './errors.ts'
import { type Fields, fieldsIn, isFields, isGiven, itemsIn, shown, textIn } from '../fields.ts'
import { checkMetadata, checkOneOf } from '../responses/shape.ts'

type Bounds = { whole: boolean; least: number; most: number }

/** The ranges that the vendor checks. */
const bounds = {
  n: { whole: true, least: 1, most: 128 },
  temperature: { whole: false, least: 0, most: 2 },
  top_p: { whole: false, least: 0, most: 1 },
  frequency_penalty: { whole: false, least: -2, most: 2 },
  presence_penalty: { whole: false, least: -2, most: 2 },
  top_logprobs: { whole: true, least: 0, most: 20 },
  max_tokens: { whole: true, least: 1, most: Infinity },
  max_completion_tokens: { whole: true, least: 1, most: Infinity },
  thinking_budget: { whole: true, least: 0, most: Infinity },
} as const satisfies Record<string, Bounds>

/** Fields that OpenAI's reasoning models refuse; `temperature` may only be 1. */
const refusedByReasoning = [
  'top_p',
  'stop',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'audio',
  'prediction',
  'modalities',
] as const

/** The vendor's rules on all fields except `messages`, in roughly the order in which it reports them. */
export function checkFields(body: Fields, model: SandboxModel): void {
  if (model.vendor === 'openai' && /-(?:codex|pro)\b/.test(model.model)) {
    const message = 'This model is only supported in v1/responses and not in v1/chat/completions.'
    throw new VendorError({ status: 404, message, param: 'model' })
  }
  if (isGiven(body.stream_options) && body.stream !== true) {
    throw badRequest("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options')
  }
  if (model.vendor === 'dashscope' && /^q[vw]q/.test(model.model) && body.stream !== true) {
    const message = 'This model only support stream mode, please enable the stream parameter to access the model. '
    throw badRequest(message, null, 'invalid_parameter_error')
  }
  for (const [name, limit] of Object.entries(bounds)) if (isGiven(body[name])) checkNumber(name, body[name], limit)
  // Only OpenAI's reasoning models refuse these fields; those of other vendors accept them.
  if (model.reasoning && model.vendor === 'openai') checkReasoningClass(body)
  checkEffort(body.reasoning_effort, model)
  if (model.vendor === 'openai') checkToolsBesideEffort(body, model)
  checkAlwaysThinking(body, model.model)
  if (labelsStored.has(model.vendor)) checkLabels(body)
  checkOneCap(body, model)
  checkOutputCap(body, model)
  if (isGiven(body.top_logprobs) && body.logprobs !== true) {
    const message = "Invalid value for 'top_logprobs': 'logprobs' must be set to true to use 'top_logprobs'."
    throw badRequest(message, 'top_logprobs')
  }
  checkStop(body.stop)
  checkBias(body.logit_bias)
  checkTools(body)
  checkFormat(body.response_format)
  if (model.vendor === 'openai') {
    if (Array.isArray(body.tools) && body.tools.length === 0) throw emptyArray('tools')
    checkStrictSchemas(body)
    checkNames(body)
  }
  if (isGiven(body.verbosity)) checkOneOf(body.verbosity, ['low', 'medium', 'high'], 'verbosity')
}

export function checkNumber(name: string, value: unknown, { whole, least, most }: Bounds): void {
  const kind = whole ? 'integer' : 'decimal'
  if (typeof value !== 'number' || (whole && !Number.isInteger(value))) {
    const message = `Invalid type for '${name}': expected ${whole ? 'an integer' : 'a decimal'}, but got something else instead.`
    throw badRequest(message, name, 'invalid_type')
  }
  if (value < least) {
    const message = `Invalid '${name}': ${kind} below minimum value. Expected a value >= ${least}, but got ${value} instead.`
    throw badRequest(message, name, `${kind}_below_min_value`)
  }
  if (value > most) {
    const message = `Invalid '${name}': ${kind} above maximum value. Expected a value <= ${most}, but got ${value} instead.`
    throw badRequest(message, name, `${kind}_above_max_value`)
  }
}

function checkReasoningClass(body: Fields): void {
  if (isGiven(body.max_tokens)) {
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    throw badRequest(message, 'max_tokens', 'unsupported_parameter')
  }
  if (isGiven(body.temperature) && body.temperature !== 1) {
    const given = Number(body.temperature)
    const message = `Unsupported value: 'temperature' does not support ${given} with this model. Only the default (1) value is supported.`
    throw badRequest(message, 'temperature', 'unsupported_value')
  }
  for (const name of refusedByReasoning) {
    if (isGiven(body[name])) throw unsupported(name)
  }
}

function checkEffort(effort: unknown, { vendor, efforts }: SandboxModel): void {
  if (!isGiven(effort) || efforts.includes(textIn(effort))) return
  if (efforts.length > 0) {
    const message = `Unsupported value: 'reasoning_effort' does not support '${shown(effort)}' with this model. Supported values are: ${quotedList(efforts)}.`
    throw badRequest(message, 'reasoning_effort', 'unsupported_value')
  }
  // Other vendors ignore fields they do not know.
  if (vendor === 'openai') throw unsupported('reasoning_effort')
}

/**
 * Since gpt-5.4 models call functions in chat completions only without reasoning. Since gpt-5.6 they reason by default,
 * and since gpt-6.1 they call none there.
 */
function checkToolsBesideEffort(body: Fields, { model }: SandboxModel): void {
  const { tools, functions, reasoning_effort: effort } = body
  const hasFunctions =
    itemsIn(functions).length > 0 || itemsIn(tools).some((tool) => fieldsIn(tool).type === 'function')
  if (!hasFunctions) return
  if (isSince(model, 6, 1)) {
    const message = `Function tools are not supported for ${model} in /v1/chat/completions. To use function tools, use /v1/responses.`
    throw badRequest(message, 'reasoning_effort')
  }
  if (effort === 'none') return
  if (!isSince(model, 5, 6) && !(isGiven(effort) && isSince(model, 5, 4))) return
  const message = `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`
  throw badRequest(message, 'reasoning_effort')
}

/** Kimi and GLM since these versions cannot be told not to think, and Kimi samples in a way of its own. */
function checkAlwaysThinking({ thinking, temperature, n }: Fields, model: string): void {
  const isKimi = /^kimi-k[3-9]/.test(model)
  if (!isKimi && !model.startsWith('glm-5.3')) return
  if (fieldsIn(thinking).type === 'disabled') throw badRequest('invalid thinking: this model always thinks', 'thinking')
  for (const [name, value] of isKimi ? Object.entries({ temperature, n }) : []) {
    if (isGiven(value) && value !== 1) throw badRequest(`invalid ${name}: only 1 is allowed for this model`, name)
  }
}

/** The vendors that take `metadata` only as labels of an answer that they store. Others ignore it. */
const labelsStored: ReadonlySet<string> = new Set(['openai', 'azure'])

function checkLabels({ metadata, store }: Fields): void {
  if (!isGiven(metadata)) return
  if (store !== true) {
    throw badRequest("The 'metadata' parameter is only allowed when 'store' is enabled.", 'metadata')
  }
  checkMetadata(metadata)
}

/** The vendors that refuse a request with both names of the output cap. Others use one of the two. */
const strictAboutCaps: ReadonlySet<string> = new Set(['openai', 'azure', 'ark'])

function checkOneCap(body: Fields, { vendor }: SandboxModel): void {
  if (!strictAboutCaps.has(vendor) || !isGiven(body.max_tokens) || !isGiven(body.max_completion_tokens)) return
  const message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
  throw badRequest(message, 'max_tokens', 'invalid_parameter_combination')
}

function checkOutputCap(body: Fields, { outputTokensMax }: SandboxModel): void {
  for (const name of ['max_tokens', 'max_completion_tokens'] as const) {
    const asked = body[name]
    if (typeof asked !== 'number' || asked <= outputTokensMax) continue
    const message = `${name} is too large: ${asked}. This model supports at most ${outputTokensMax} completion tokens, whereas you provided ${asked}.`
    throw badRequest(message, name, 'invalid_value')
  }
}

function checkStop(stop: unknown): void {
  if (!isGiven(stop) || typeof stop === 'string') return
  if (!Array.isArray(stop) || stop.some((item) => typeof item !== 'string')) {
    throw badRequest("Invalid type for 'stop': expected one of an array of strings or string.", 'stop', 'invalid_type')
  }
  if (stop.length > 4) {
    const message = `Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length ${stop.length} instead.`
    throw badRequest(message, 'stop', 'array_above_max_length')
  }
}

function checkBias(bias: unknown): void {
  for (const [token, value] of Object.entries(fieldsIn(bias))) {
    checkNumber(`logit_bias.${token}`, value, { whole: false, least: -100, most: 100 })
  }
}

/**
 * Fields of other protocols and vendors, which a faulty translation may leave behind. OpenAI refuses every unknown
 * field; the simulator takes those that no protocol has, so that tests can see them arrive.
 */
const othersOwn = [
  'cache_control',
  'contents',
  'enable_thinking',
  'generationConfig',
  'input',
  'instructions',
  'max_output_tokens',
  'mcp_servers',
  'output_config',
  'reasoning',
  'repetition_penalty',
  'stop_sequences',
  'system',
  'systemInstruction',
  'text',
  'thinking',
  'thinking_budget',
  'top_k',
] as const

function checkNames(body: Fields): void {
  const other = othersOwn.find((name) => isGiven(body[name]))
  if (other !== undefined) throw unknownField(other)
}

function checkTools(body: Fields): void {
  const tools = itemsIn(body.tools)
  if (tools.length === 0) {
    for (const name of ['tool_choice', 'parallel_tool_calls'] as const) {
      if (!isGiven(body[name]) || (name === 'tool_choice' && body[name] === 'none')) continue
      throw badRequest(`Invalid value for '${name}': '${name}' is only allowed when 'tools' are specified.`, name)
    }
  }
  for (const [index, tool] of tools.entries()) {
    const { type, ...fields } = fieldsIn(tool)
    const param = `tools[${index}]`
    if (type !== 'function' && type !== 'custom') {
      const message = `Invalid value: '${shown(type)}'. Supported values are: 'function' and 'custom'.`
      throw badRequest(message, `${param}.type`, 'invalid_value')
    }
    const name = fieldsIn(fields[type]).name
    if (typeof name !== 'string') throw missing(`${param}.${type}.name`)
    if (!namePattern.test(name)) {
      const message = `Invalid '${param}.${type}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`
      throw badRequest(message, `${param}.${type}.name`, 'invalid_value')
    }
  }
}

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/

function checkFormat(format: unknown): void {
  if (!isGiven(format)) return
  const { type, json_schema: wanted } = fieldsIn(format)
  checkOneOf(type, ['json_object', 'json_schema', 'text'], 'response_format.type')
  if (type !== 'json_schema') return
  if (!isFields(wanted)) throw missing('response_format.json_schema')
  if (!namePattern.test(textIn(wanted.name))) throw missing('response_format.json_schema.name')
}
