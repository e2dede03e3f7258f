import { type EmbeddingAsk, countUnits, readInputs, steeringOf, vectorsOf } from '../embeddings/ask.ts'
import { dashscopeRefusals } from '../embeddings/dashscope-refusals.ts'
import { hasDimensions, rulesFor } from '../embeddings/rules.ts'
import { isGiven, shown } from '../fields.ts'
import { usageUnlessHidden } from '../media/reported.ts'
import type { Endpoint } from '../serve.ts'
import type { SandboxModel } from '../model.ts'
import type { CodedRefusal } from '../refusal.ts'
import { invalidForAlgorithm, invalidParameter, requestIdFor } from './errors.ts'
import { type Native, nativeHeaders, nativeDialect, openNative } from './native.ts'

/** Embeddings in the vendor's own protocol: `texts` in, and a single number of usage out. */
export const nativeEmbeddings: Endpoint<Native, EmbeddingAsk, CodedRefusal> = {
  dialect: nativeDialect,
  capabilities: ['embeddings'],
  open: openNative,
  read: readAsk,
  make(ask, call) {
    const units = countUnits(ask)
    const embeddings = vectorsOf(ask).map((vector, index) => ({ text_index: index, embedding: Array.from(vector) }))
    const usage = usageUnlessHidden(ask.steering, { total_tokens: units.input })
    const answer = { output: { embeddings }, ...usage, request_id: requestIdFor(call.text) }
    return { units, headers: nativeHeaders(call), body: { kind: 'whole', text: JSON.stringify(answer) } }
  },
}

function readAsk({ input, parameters }: Native, model: SandboxModel): EmbeddingAsk {
  const rules = rulesFor(model.model)
  const { dimension = rules.dimensionsDefault } = parameters
  if (!hasDimensions(rules, Number(dimension))) {
    throw invalidForAlgorithm(`Value error, dimension ${shown(dimension)} is invalid.: parameters.dimension`)
  }
  if (isGiven(parameters.output_type) && parameters.output_type !== 'dense') {
    throw invalidForAlgorithm('the sandbox makes dense embeddings only.: parameters.output_type')
  }
  const inputs = readInputs(input.texts, rules, refusals)
  return { model, steering: steeringOf(inputs), inputs, dimensions: Number(dimension), encoding: 'float' }
}

const refusals = dashscopeRefusals(invalidParameter)
