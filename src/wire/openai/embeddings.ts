import { badRequest, GatewayError } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { Asked } from '../../capabilities/ask.ts'
import {
  batchesOf,
  tokensMaxOf,
  type EmbeddingInput,
  type EmbeddingsAnswer,
  type EmbeddingsAsk,
} from '../../capabilities/embeddings.ts'
import type { EmbeddingLimits, ModelTraits } from '../../capabilities/limits.ts'
import { fieldError } from '../issues.ts'
import { requireModel } from '../require-model.ts'
import { toBase64, toNumbers } from '../vectors.ts'
import { isGiven } from './chat-ask.ts'
import { embeddingsRequest } from './embeddings-schema.ts'
import { countText } from './estimate.ts'

// Five times what the common protocol's own vendor takes at once; at the smallest batch of any vendor a thousand calls.
const inputsMax = 10_000
// A million tokens, given as numbers, are longer than all that a vendor takes in one call.
const tokensMax = 1_000_000

/** Embeddings as the common protocol asks for them. */
export const openaiEmbeddings = { readAsk, estimateInput, writeAnswer }

function readAsk({ body }: Asked, lookUp: (model: string) => ModelTraits): EmbeddingsAsk {
  const model = requireModel(body)
  const traits = lookUp(model)
  const { embeddings: limits } = traits
  if (limits === undefined) throw new GatewayError('bug', `${model} has no limits for embeddings`)
  checkShape(body['input'])
  const parsed = embeddingsRequest.safeParse(body)
  if (!parsed.success) throw fieldError(parsed.error)
  const { input, encoding_format: encoding, dimensions: asked, user, model: _, ...extras } = parsed.data

  const inputs = inputsIn(input)
  const dimensions = asked ?? traits.pinned?.dimensions
  if (isGiven(asked)) checkDimensions(asked, limits)
  const tokens = inputs.reduce((sum, each) => sum + tokensMaxOf(each), 0)
  return {
    capability: 'embeddings',
    model,
    stream: false,
    bound: { input: tokens, request: batchesOf(inputs, limits).length },
    believable: { input: tokens, output: 0 },
    inputs,
    encoding: encoding ?? 'float',
    // A model that takes no choice refuses even to be told what it has.
    ...(dimensions !== undefined && limits.dimensions.length > 0 && { dimensions }),
    limits,
    ...(isGiven(user) && { user }),
    extras: extras as JsonObject,
  }
}

/** Looked at before anything else is: to check a million wrong items one by one is what an attacker would ask for. */
function checkShape(input: Json | undefined): void {
  if (!isGiven(input)) throw badRequest("Missing required parameter: 'input'.", 'input', 'missing_required_parameter')
  if (!Array.isArray(input)) return
  if (input.length === 0) throw badRequest("Invalid 'input': there is nothing to embed.", 'input')
  const isOne = typeof input[0] === 'number'
  const most = isOne ? tokensMax : inputsMax
  if (input.length > most) throw tooLong('input', most, input.length)
  const tokens = input.reduce((sum: number, item: Json) => sum + (Array.isArray(item) ? item.length : 0), 0)
  if (tokens > tokensMax) throw tooLong('input', tokensMax, tokens)
}

function tooLong(param: string, most: number, length: number): GatewayError {
  const message = `Invalid '${param}': array too long. Expected at most ${most} items, but got ${length}.`
  return badRequest(message, param, 'array_above_max_length')
}

/** Half of a surrogate pair is no character; what a vendor would read in its place is what is sent, and paid for. */
function inputsIn(input: string | readonly string[] | readonly number[] | readonly number[][]): EmbeddingInput[] {
  if (typeof input === 'string') return [input.toWellFormed()]
  const [first] = input
  if (typeof first === 'number') return [input as readonly number[]]
  return input.map((item) => (typeof item === 'string' ? item.toWellFormed() : (item as readonly number[])))
}

function checkDimensions(asked: number, limits: EmbeddingLimits): void {
  const { dimensions, dimensionsSpan: span, dimensionsDefault } = limits
  const offered = dimensions.length > 0 ? dimensions : [dimensionsDefault]
  if (offered.includes(asked) || (span !== undefined && asked >= span.min && asked <= span.max)) return
  const list = offered.toSorted((a, b) => a - b).join(', ')
  const between = span === undefined ? '' : `, and any number from ${span.min} to ${span.max}`
  const message = `Unsupported value: 'dimensions' does not support ${asked} with this model. Supported values are: ${list}${between}.`
  throw badRequest(message, 'dimensions', 'unsupported_value')
}

function estimateInput({ inputs }: EmbeddingsAsk): number {
  return tokensIn(inputs)
}

/** Tokens of inputs, for when the vendor counted none: never 0, since something was read. */
export function tokensIn(inputs: readonly EmbeddingInput[]): number {
  const tokens = inputs.reduce(
    (sum: number, input) => sum + (typeof input === 'string' ? countText(input) : input.length),
    0,
  )
  return Math.max(1, tokens)
}

function writeAnswer({ model, encoding }: EmbeddingsAsk, { vectors, inputTokens }: EmbeddingsAnswer) {
  const write = encoding === 'base64' ? toBase64 : toNumbers
  const answer = {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: write(vector) })),
    model,
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  }
  return { body: new TextEncoder().encode(JSON.stringify(answer)), contentType: 'application/json' }
}
