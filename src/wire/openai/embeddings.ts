import { GatewayError } from '../../base/errors.ts'
import { asDouble, isGiven, type JsonObject } from '../../base/json.ts'
import type { ReceivedRequest } from '../../capabilities/ask.ts'
import { batchesOf, tokensMaxOf, type EmbeddingInput, type EmbeddingsAsk } from '../../capabilities/embeddings.ts'
import type { EmbeddingLimits, ModelTraits } from '../../capabilities/limits.ts'
import { checkSpellingOf } from '../check-spelling.ts'
import { parseBy } from '../check.ts'
import { countText } from '../estimate.ts'
import { invalid, unsupportedValue } from '../issues.ts'
import { requireModel } from '../require-model.ts'
import { refuseRerouting, reroutingFields } from '../rerouting.ts'
import { writeAnswer } from './embeddings-answer.ts'
import { readInputs } from './embeddings-input.ts'
import { embeddingsRequest } from './embeddings-schema.ts'

/** The most numbers in one answer: the maximum of inputs, at the most dimensions of any model in wide use. */
const numbersMax = 2_048 * 3_072
/** The most numbers in the answer to one call. A body is parsed in one go: a million numbers took about 40 ms. */
const numbersPerCallMax = 1_048_576

/** Embeddings in the common protocol. */
export const openaiEmbeddings = { readAsk, estimateInput: ({ inputs }: EmbeddingsAsk) => tokensIn(inputs), writeAnswer }

const withoutInput = embeddingsRequest.omit({ input: true })
const checkSpelling = checkSpellingOf([...Object.keys(embeddingsRequest.shape), ...reroutingFields])

function readAsk({ body }: ReceivedRequest, lookUp: (model: string) => ModelTraits): EmbeddingsAsk {
  const model = requireModel(body)
  const traits = lookUp(model)
  const { embeddings: whole } = traits
  if (whole === undefined) throw new GatewayError('bug', `${model} has no limits for embeddings`)
  checkSpelling(body)
  refuseRerouting(body)
  const { input, ...rest } = body
  const inputs = readInputs(input, whole.inputTokensMax)
  const request = parseBy(withoutInput, { ...rest, dimensions: asDouble(body['dimensions']) }, body)
  const { encoding_format: encoding, dimensions: asked, user, model: _, ...extras } = request

  const dimensions = asked ?? traits.pinned?.dimensions
  if (isGiven(asked)) checkDimensions(asked, whole)
  const width = dimensions ?? whole.dimensionsDefault
  checkNumbers(inputs.length, width)
  const batchMax = Math.max(1, Math.min(whole.batchMax, Math.floor(numbersPerCallMax / width)))
  const limits = { ...whole, batchMax }
  const tokens = inputs.reduce((sum, each) => sum + tokensMaxOf(each), 0)
  return {
    capability: 'embeddings',
    model,
    stream: false,
    bound: { input: tokens, request: batchesOf(inputs, limits).length },
    believable: { input: tokens, output: 0 },
    inputs,
    encoding: encoding ?? 'float',
    // A model with fixed dimensions refuses the field even with its own value.
    ...(dimensions !== undefined && limits.dimensions.length > 0 && { dimensions }),
    limits,
    ...(isGiven(user) && { user }),
    extras: extras as JsonObject,
  }
}

/** A vector takes about twenty bytes per number, however short its input, so the size of the answer is limited. */
function checkNumbers(inputs: number, dimensions: number): void {
  if (inputs * dimensions <= numbersMax) return
  const most = Math.max(1, Math.floor(numbersMax / dimensions))
  const why = `array too long. At ${dimensions} dimensions at most ${most} inputs can be embedded at once, but got ${inputs}`
  throw invalid('input', why, 'array_above_max_length')
}

function checkDimensions(asked: number, limits: EmbeddingLimits): void {
  const { dimensions, dimensionsSpan: span, dimensionsDefault } = limits
  const offered = dimensions.length > 0 ? dimensions : [dimensionsDefault]
  if (offered.includes(asked) || (span !== undefined && asked >= span.min && asked <= span.max)) return
  const list = offered.toSorted((a, b) => a - b).join(', ')
  const between = span === undefined ? '' : `, and any number from ${span.min} to ${span.max}`
  throw unsupportedValue('dimensions', asked, `Supported values are: ${list}${between}.`)
}

/** Tokens of inputs, for when the vendor counted none. Never 0, because something was read. */
export function tokensIn(inputs: readonly EmbeddingInput[]): number {
  const texts = inputs.filter((input) => typeof input === 'string')
  const counted = inputs.reduce((sum, input) => sum + (typeof input === 'string' ? 0 : input.length), 0)
  return Math.max(1, countText(texts) + counted)
}
