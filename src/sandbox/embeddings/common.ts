import { badRequest, missing, quotedList, unknownField, VendorError } from '../chat/errors.ts'
import { checkNumber } from '../chat/check-fields.ts'
import { type Fields, isGiven } from '../fields.ts'
import { commonDialect, oneOf } from '../media/common.ts'
import { usageUnlessHidden } from '../media/reported.ts'
import type { SandboxModel } from '../model.ts'
import { hashText, seededId } from '../seeded.ts'
import { type EmbeddingAsk, type InputRefusals, readInputs, steeringOf, vectorsOf } from './ask.ts'
import { dashscopeRefusals } from './dashscope-refusals.ts'
import { embeddingsAt } from './endpoint.ts'
import { type EmbeddingRules, hasDimensions, rulesFor } from './rules.ts'
import { toBase64 } from './vector.ts'

/** `POST /embeddings` in OpenAI's form, which most vendors share. */
export const embeddingsProtocol = embeddingsAt('/embeddings', {
  dialect: commonDialect,
  read: readAsk,
  write: (ask, { input }, call) => ({
    object: 'list',
    data: writeVectors(ask),
    model: ask.model.model,
    ...usageUnlessHidden(ask.steering, { prompt_tokens: input, total_tokens: input }),
    ...extras(ask, call.text),
  }),
})

export function writeVectors(ask: EmbeddingAsk): unknown[] {
  return vectorsOf(ask).map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: ask.encoding === 'base64' ? toBase64(vector) : Array.from(vector),
  }))
}

/** Alibaba adds an id to the common form, ByteDance an id and the time. */
function extras({ model: { vendor } }: EmbeddingAsk, seed: string): object {
  if (vendor !== 'dashscope' && vendor !== 'ark') return {}
  const id = seededId('', hashText(seed))
  return vendor === 'ark' ? { id, created: Math.floor(Date.now() / 1000) } : { id }
}

function readAsk(body: Fields, model: SandboxModel): EmbeddingAsk {
  const rules = rulesFor(model.model)
  // Of the vendors of this form, only Mistral refuses a field that it does not know.
  if (model.vendor === 'mistral' && body.user !== undefined) throw unknownField('user')
  const encoding = oneOf(body, 'encoding_format', rules.takesBase64 ? ['float', 'base64'] : ['float'])
  const inputs = readInputs(body.input, rules, model.vendor === 'dashscope' ? compatibleRefusals : refusals)
  return { model, steering: steeringOf(inputs), inputs, encoding, dimensions: readDimensions(body.dimensions, rules) }
}

function readDimensions(asked: unknown, rules: EmbeddingRules): number {
  if (!isGiven(asked)) return rules.dimensionsDefault
  if (rules.dimensions === 'fixed') {
    throw badRequest('This model does not support specifying dimensions.', 'dimensions', 'unsupported_parameter')
  }
  checkNumber('dimensions', asked, { whole: true, least: 1, most: rules.dimensionsMax })
  if (hasDimensions(rules, Number(asked))) return Number(asked)
  const list = rules.dimensions === 'any' ? '' : quotedList(rules.dimensions.map(String))
  const message = `Value error, dimension ${Number(asked)} is invalid. Supported values are: ${list}.`
  throw badRequest(message, 'dimensions', 'invalid_value')
}

const refusals: InputRefusals = {
  missing: () => missing('input'),
  empty: (index) => badRequest(`Invalid 'input[${index}]': input cannot be an empty string.`, 'input', 'invalid_value'),
  wrongType: (index) =>
    badRequest(`Invalid type for 'input[${index}]': expected a string or an array of tokens.`, 'input', 'invalid_type'),
  tooMany(count, most) {
    const message = `Invalid 'input': array too long. Expected an array with maximum length ${most}, but got an array with length ${count} instead.`
    return badRequest(message, 'input', 'array_above_max_length')
  },
  tooLong: (index, _, most) => badRequest(`Invalid 'input[${index}]': maximum input length is ${most} tokens.`, null),
  batchTooLong(tokens, most) {
    const message = `Requested ${tokens} tokens, max ${most} tokens per request`
    return new VendorError({ status: 400, message, type: 'max_tokens_per_request', code: 'max_tokens_per_request' })
  },
}

const compatibleRefusals = dashscopeRefusals((message) => badRequest(message, null))
