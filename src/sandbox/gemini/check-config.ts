import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { invalid, invalidField } from './errors.ts'
import { checkSchema } from './schema.ts'
import { generationOf } from './thinking.ts'

type Circumstances = { model: SandboxModel; isStreaming: boolean; hasTools: boolean }

const ranges = {
  temperature: ['temperature', 0, 2],
  topP: ['top_p', 0, 1],
  presencePenalty: ['presence_penalty', -2, 2],
  frequencyPenalty: ['frequency_penalty', -2, 2],
  topK: ['top_k', 1, Infinity],
} as const satisfies Record<string, readonly [field: string, least: number, most: number]>

const stopSequencesMax = 5
const candidatesMax = 8
const alternativesMax = 20

/** The vendor's rules on `generationConfig`, except for thinking. */
export function checkConfig(config: Fields, circumstances: Circumstances): void {
  for (const [name, [field, least, most]] of Object.entries(ranges)) {
    const given = config[name]
    if (typeof given !== 'number' || (given >= least && given <= most)) continue
    throw invalidField(
      `generation_config.${field}`,
      most === Infinity ? `${field} must be positive.` : `${field} must be in the range [${least}.0, ${most}.0].`,
    )
  }
  checkPenalties(config, circumstances.model)
  checkCounts(config, circumstances)
  checkLogprobs(config, circumstances.model)
  checkFormat(config, circumstances)
  if (itemsIn(config.responseModalities).some((modality) => modality === 'IMAGE' || modality === 'AUDIO')) {
    throw invalid('This model only supports text output.')
  }
}

function checkCounts(config: Fields, { model, isStreaming }: Circumstances): void {
  const { maxOutputTokens, candidateCount: candidates, stopSequences } = config
  const most = model.outputTokensMax
  if (typeof maxOutputTokens === 'number' && (maxOutputTokens < 1 || maxOutputTokens > most)) {
    throw invalid(
      `Unable to submit request because it has a maxOutputTokens value of ${maxOutputTokens} but the supported range is from 1 (inclusive) to ${most + 1} (exclusive). Update the value and try again.`,
    )
  }
  if (typeof candidates === 'number') {
    if (candidates < 1 || candidates > candidatesMax) {
      throw invalidField(
        'generation_config.candidate_count',
        `candidate_count must be in the range [1, ${candidatesMax}].`,
      )
    }
    if (candidates > 1 && isStreaming) throw invalid('Only one candidate can be specified in a streaming request.')
  }
  const stops = itemsIn(stopSequences)
  if (stops.length > stopSequencesMax) {
    throw invalidField('generation_config.stop_sequences', `at most ${stopSequencesMax} stop sequences are allowed.`)
  }
  if (stops.includes('')) throw invalidField('generation_config.stop_sequences', 'must not be empty.')
}

/** The models before 2.5. */
const takesPenalties = /^gemini-(?:1|2\.0)/

function checkPenalties({ presencePenalty = 0, frequencyPenalty = 0 }: Fields, { model }: SandboxModel): void {
  if ((presencePenalty === 0 && frequencyPenalty === 0) || takesPenalties.test(model)) return
  throw invalid('Penalty is not enabled for this model')
}

function checkLogprobs({ responseLogprobs, logprobs }: Fields, model: SandboxModel): void {
  if (typeof logprobs === 'number' && responseLogprobs !== true) {
    throw invalid('logprobs is only allowed when response_logprobs is true.')
  }
  if (typeof logprobs === 'number' && (logprobs < 0 || logprobs > alternativesMax)) {
    throw invalidField('generation_config.logprobs', `logprobs must be in the range [0, ${alternativesMax}].`)
  }
  if (responseLogprobs === true && generationOf(model) >= 3) {
    throw invalid(`Logprobs is not enabled for models/${model.model}`)
  }
}

const mimeTypes: ReadonlySet<string> = new Set(['text/plain', 'application/json', 'text/x.enum'])

function checkFormat(config: Fields, { model, hasTools }: Circumstances): void {
  const { responseSchema, responseJsonSchema } = config
  const mimeType = textIn(config.responseMimeType) || 'text/plain'
  if (!mimeTypes.has(mimeType)) {
    throw invalidField(
      'generation_config.response_mime_type',
      'allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and `text/x.enum`.',
    )
  }
  if (isGiven(responseSchema) && isGiven(responseJsonSchema)) {
    throw invalid('Only one of response_schema and response_json_schema can be set.')
  }
  if ((isGiven(responseSchema) || isGiven(responseJsonSchema)) && mimeType === 'text/plain') {
    throw invalid("response_schema is only allowed when response_mime_type is 'application/json' or 'text/x.enum'.")
  }
  if (mimeType !== 'text/plain' && hasTools && generationOf(model) < 3) {
    throw invalid(`Function calling with a response mime type: '${mimeType}' is unsupported`)
  }
  if (isGiven(responseSchema)) checkSchema(fieldsIn(responseSchema), 'generation_config.response_schema')
}
