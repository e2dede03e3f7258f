import { type Fields, fieldsIn, isGiven, shown } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { checkNoMoreProperties } from './check-tools.ts'
import { invalid } from './errors.ts'
import type { Head } from './head.ts'
import { checkExtras, checkFlag, checkOneOf, checkWithin, extra, fieldsAt, listAt, textAt, wholeAt } from './shape.ts'

/** The fields of count_tokens. The others concern only the making of an answer. */
const promptFields = [
  'model',
  'messages',
  'system',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'cache_control',
  'speed',
] as const

const answerFields = [
  ...promptFields,
  'max_tokens',
  'stop_sequences',
  'stream',
  'metadata',
  'temperature',
  'top_p',
  'top_k',
  'service_tier',
  'container',
  'diagnostics',
  'inference_geo',
] as const

/**
 * Fields that need one of these betas. `safeguards` was seen in requests of the vendor's command-line tool; the name of
 * its beta is a guess. `output_format` has moved to `output_config`, and clients written for the beta still send it.
 */
const betaFields: ReadonlyMap<string, readonly string[]> = new Map([
  ['context_management', ['context-management']],
  ['mcp_servers', ['mcp-client']],
  ['output_format', ['structured-outputs']],
  ['safeguards', ['safeguards', 'claude-code']],
])

export function checkKnownFields(body: Fields, { betas }: Head, purpose: 'answer' | 'count'): void {
  const known: readonly string[] = purpose === 'answer' ? answerFields : promptFields
  for (const name of Object.keys(body)) {
    const isKnown = betaFields.get(name)?.some((beta) => betas.has(beta)) ?? known.includes(name)
    if (!isKnown) throw extra(name)
  }
}

/** Checks the fields that shape the answer but not the prompt. */
export function checkAnswerFields(body: Fields, model: SandboxModel, { version }: Head): void {
  const maxTokens = wholeAt('max_tokens', body.max_tokens, 0)
  if (maxTokens > model.outputTokensMax) {
    const message = `${maxTokens} > ${model.outputTokensMax}, which is the maximum allowed number of output tokens for ${model.model}`
    throw invalid('max_tokens', message)
  }
  checkFlag('stream', body.stream)
  checkStops(body.stop_sequences)
  checkMetadata(body.metadata)
  if (isGiven(body.service_tier)) checkOneOf('service_tier', body.service_tier, ['auto', 'standard_only'])
  checkSampling(body, version, model)
}

function checkStops(stops: unknown): void {
  if (!isGiven(stops)) return
  for (const [index, stop] of listAt('stop_sequences', stops).entries()) {
    if (textAt(`stop_sequences.${index}`, stop).trim() !== '') continue
    throw invalid('stop_sequences', 'each stop sequence must contain non-whitespace')
  }
}

function checkMetadata(metadata: unknown): void {
  if (!isGiven(metadata)) return
  const fields = fieldsAt('metadata', metadata)
  checkExtras('metadata', fields, ['user_id'])
  if (!isGiven(fields.user_id)) return
  const id = textAt('metadata.user_id', fields.user_id)
  if (/^[^\s@]+@[^\s@]+\.[a-z]{2,}$/i.test(id)) {
    throw invalid('metadata.user_id', 'user_id appears to contain an email address')
  }
}

const defaults: Readonly<Record<string, number>> = { temperature: 1, top_p: 1 }

/** The newer version of the API refuses all sampling fields, even with default values. */
function checkSampling(body: Fields, version: Head['version'], { sampling }: SandboxModel): void {
  for (const name of ['temperature', 'top_p', 'top_k'] as const) {
    if (!isGiven(body[name])) continue
    if (version === '2026-10-21') throw invalid(name, `not supported with anthropic-version ${version}`)
    if (body[name] === -1) throw invalid('', `\`${name}\` cannot be set to -1 for this model.`)
    if (sampling === false && body[name] !== defaults[name])
      throw invalid('', `\`${name}\` is not taken by this model.`)
    if (name === 'top_k') wholeAt(name, body[name], 0)
    else checkWithin(name, body[name], 0, 1)
  }
  if (isGiven(body.temperature) && isGiven(body.top_p)) {
    throw invalid('', '`temperature` and `top_p` cannot both be specified for this model. Please use only one.')
  }
}

/** The format that the answer must have, and the field that gives it. */
export function formatOf({ output_config: config, output_format: before }: Fields): { format: unknown; at: string } {
  if (isGiven(before)) return { format: before, at: 'output_format' }
  return { format: fieldsIn(config).format, at: 'output_config.format' }
}

export function checkFormat(body: Fields): void {
  const { format, at } = formatOf(body)
  if (!isGiven(format)) return
  const fields = fieldsAt(at, format)
  checkOneOf(`${at}.type`, fields.type, ['json_schema'])
  checkExtras(at, fields, ['type', 'schema'])
  checkNoMoreProperties(`${at}.schema`, fieldsAt(`${at}.schema`, fields.schema))
}

export function checkOutputConfig(config: unknown, { efforts }: SandboxModel): void {
  if (!isGiven(config)) return
  const { effort } = fieldsAt('output_config', config)
  checkExtras('output_config', fieldsAt('output_config', config), ['effort', 'format'])
  if (isGiven(effort)) {
    checkOneOf('output_config.effort', effort, ['low', 'medium', 'high', 'xhigh', 'max'])
    if (efforts.length === 0) throw invalid('', 'This model does not support the effort parameter.')
    if (!efforts.includes(shown(effort))) {
      throw invalid('', `This model does not support effort level '${shown(effort)}'.`)
    }
  }
}
