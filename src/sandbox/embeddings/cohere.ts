import { badRequest, type VendorError } from '../chat/errors.ts'
import { type Fields, isGiven, itemsIn, shown, textIn } from '../fields.ts'
import { commonDialect } from '../media/common.ts'
import type { Dialect } from '../serve.ts'
import type { SandboxModel } from '../model.ts'
import { hashText, seededId } from '../seeded.ts'
import { type EmbeddingAsk, type InputRefusals, readInputs, steeringOf, vectorsOf } from './ask.ts'
import { embeddingsAt } from './endpoint.ts'
import { hasDimensions, rulesFor } from './rules.ts'
import { toBase64 } from './vector.ts'

const dialect: Dialect<VendorError> = {
  ...commonDialect,
  writeRefusal: ({ text }, { status, message }) =>
    Response.json({ id: seededId('', hashText(text)), message }, { status }),
}

/** `POST /embed` of Cohere's second version: texts in; vectors by type and the billed tokens out. */
export const cohereProtocol = embeddingsAt('/embed', {
  dialect,
  read: readAsk,
  write(ask, { input }, call) {
    const vectors = vectorsOf(ask)
    const billed = ask.steering.has('nousage') ? {} : { billed_units: { input_tokens: input } }
    return {
      id: seededId('', hashText(call.text)),
      embeddings: ask.encoding === 'base64' ? { base64: vectors.map(toBase64) } : { float: vectors.map((v) => [...v]) },
      texts: ask.inputs.map((tokens) => tokens.join('')),
      meta: { api_version: { version: '2' }, ...billed },
      response_type: 'embeddings_by_type',
    }
  },
})

const inputTypes = new Set(['search_document', 'search_query', 'classification', 'clustering', 'image'])

function readAsk(body: Fields, model: SandboxModel): EmbeddingAsk {
  const rules = rulesFor(model.model)
  if (!inputTypes.has(textIn(body.input_type))) {
    throw refuse('invalid request: valid input_type must be provided with the provided model')
  }
  const types = itemsIn(body.embedding_types ?? ['float'])
  const [type] = types
  if (types.length !== 1 || (type !== 'float' && type !== 'base64')) {
    throw refuse('invalid request: the sandbox makes one type of embeddings, float or base64.')
  }
  const { output_dimension: dimension } = body
  if (isGiven(dimension) && !hasDimensions(rules, Number(dimension))) {
    throw refuse(`invalid request: output_dimension ${shown(dimension)} is not supported by ${model.model}.`)
  }
  // Long texts are cut at the end unless the request says NONE.
  const inputs = readInputs(body.texts, rules, refusals, body.truncate !== 'NONE')
  return {
    model,
    steering: steeringOf(inputs),
    inputs,
    dimensions: isGiven(dimension) ? Number(dimension) : rules.dimensionsDefault,
    encoding: type,
  }
}

const refuse = (message: string): VendorError => badRequest(message, null)

const refusals: InputRefusals = {
  missing: () => refuse('invalid request: at least one of texts, images or inputs must be provided.'),
  empty: () => refuse('invalid request: all elements in texts must be non-empty strings.'),
  wrongType: () => refuse('invalid request: texts must be an array of strings.'),
  tooMany: (count, most) =>
    refuse(`invalid request: total number of texts must be at most ${most} - received ${count}`),
  tooLong: (_, __, most) => refuse(`invalid request: too many tokens: size limit exceeded by the text, max ${most}.`),
  batchTooLong: (tokens) => refuse(`invalid request: too many tokens: ${tokens}`),
}
