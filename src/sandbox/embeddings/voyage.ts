import { badRequest, type VendorError } from '../chat/errors.ts'
import { type Fields, isGiven, shown } from '../fields.ts'
import { commonDialect } from '../media/common.ts'
import { usageUnlessHidden } from '../media/reported.ts'
import type { Dialect } from '../serve.ts'
import type { SandboxModel } from '../model.ts'
import { htmlPage } from '../odd-answers.ts'
import { writeVectors } from './common.ts'
import { type EmbeddingAsk, type InputRefusals, readInputs, steeringOf } from './ask.ts'
import { embeddingsAt } from './endpoint.ts'
import { hasDimensions, rulesFor } from './rules.ts'

/** Voyage puts every refusal as one sentence into `detail`. */
const dialect: Dialect<VendorError> = {
  ...commonDialect,
  writeRefusal: (_, { status, message }) =>
    status === 502 ? htmlPage(status) : Response.json({ detail: message }, { status }),
}

/** `POST /embeddings` of Voyage: OpenAI's answer with a single number of usage, but other names in the request. */
export const voyageProtocol = embeddingsAt('/embeddings', {
  dialect,
  read: readAsk,
  write: (ask, { input }) => ({
    object: 'list',
    data: writeVectors(ask),
    model: ask.model.model,
    ...usageUnlessHidden(ask.steering, { total_tokens: input }),
  }),
})

const fields = new Set([
  'input',
  'model',
  'input_type',
  'truncation',
  'output_dimension',
  'output_dtype',
  'encoding_format',
])

function readAsk(body: Fields, model: SandboxModel): EmbeddingAsk {
  const unknown = Object.keys(body).find((name) => !fields.has(name))
  if (unknown !== undefined) throw refuse(`Argument '${unknown}' is not supported by our API.`)
  const rules = rulesFor(model.model)
  const { encoding_format: encoding, output_dimension: dimension, input_type: kind, output_dtype: type } = body
  if (isGiven(encoding) && encoding !== 'base64') {
    throw refuse(`Value '${shown(encoding)}' provided for argument 'encoding_format' is not one of: null, 'base64'.`)
  }
  if (isGiven(kind) && kind !== 'query' && kind !== 'document') {
    throw refuse(`Value '${shown(kind)}' provided for argument 'input_type' is not one of: null, 'query', 'document'.`)
  }
  if (isGiven(type) && type !== 'float') throw refuse('The sandbox makes no other output_dtype than float.')
  if (isGiven(dimension) && !hasDimensions(rules, Number(dimension))) {
    const list = rules.dimensions === 'any' || rules.dimensions === 'fixed' ? '' : rules.dimensions.join(', ')
    throw refuse(
      `Model ${model.model} does not support output_dimension set to ${shown(dimension)}. Use one of: ${list}.`,
    )
  }
  // Texts beyond the model's input length are cut unless the request says otherwise.
  const inputs = readInputs(body.input, rules, refusalsFor(model.model), body.truncation !== false)
  return {
    model,
    steering: steeringOf(inputs),
    inputs,
    dimensions: isGiven(dimension) ? Number(dimension) : rules.dimensionsDefault,
    encoding: encoding === 'base64' ? 'base64' : 'float',
  }
}

const refuse = (message: string): VendorError => badRequest(message, null)

function refusalsFor(model: string): InputRefusals {
  return {
    missing: () => refuse("Argument 'input' is required and cannot be empty."),
    empty: () => refuse('Input cannot contain empty strings or empty lists.'),
    wrongType: () => refuse("Argument 'input' must be a string or a list of strings."),
    tooMany: (count, most) => refuse(`The batch size limit is ${most}. Your batch size is ${count}.`),
    tooLong: (index, tokens, most) =>
      refuse(`Request to model '${model}' failed. Input ${index} has ${tokens} tokens; the limit is ${most}.`),
    batchTooLong: (tokens, most) =>
      refuse(
        `Request to model '${model}' failed. The max allowed tokens per submitted batch is ${most}. Your batch has ${tokens} tokens after truncation. Please lower the number of tokens in the batch.`,
      ),
  }
}
