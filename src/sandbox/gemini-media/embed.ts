import { type EmbeddingAsk, countUnits, steeringOf, vectorsOf } from '../embeddings/ask.ts'
import { rulesFor } from '../embeddings/rules.ts'
import { contentText, type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { type GoogleError, invalid, jsonType, writeJson } from '../gemini/errors.ts'
import { int32, list, message, oneOf, readMessage, string } from '../gemini/proto.ts'
import { content } from '../gemini/shapes.ts'
import type { Endpoint } from '../serve.ts'
import { dialectOn } from '../gemini/dialect.ts'
import { splitTokens } from '../tokens.ts'

const embedRequest = message('EmbedContentRequest', () => ({
  model: string,
  content,
  taskType: oneOf(
    'TaskType',
    'TASK_TYPE_UNSPECIFIED',
    'RETRIEVAL_QUERY',
    'RETRIEVAL_DOCUMENT',
    'SEMANTIC_SIMILARITY',
    'CLASSIFICATION',
    'CLUSTERING',
    'QUESTION_ANSWERING',
    'FACT_VERIFICATION',
    'CODE_RETRIEVAL_QUERY',
  ),
  title: string,
  outputDimensionality: int32,
}))

const batchRequest = message('BatchEmbedContentsRequest', () => ({ model: string, requests: list(embedRequest) }))

type Method = 'embedContent' | 'batchEmbedContents'

/** One text, or up to a hundred that each name the model again. */
export function embedding(model: string, method: Method): Endpoint<readonly Fields[], EmbeddingAsk, GoogleError> {
  const isBatch = method === 'batchEmbedContents'
  return {
    dialect: dialectOn(method),
    capabilities: ['embeddings'],
    open({ text }) {
      const body = readMessage(text, isBatch ? batchRequest : embedRequest)
      return { model, body: isBatch ? readBatch(itemsIn(body.requests).map(fieldsIn), model) : [body] }
    },
    read(requests, known) {
      const inputs = requests.map((request, index) => readContent(request, index, rulesFor(known.model).tokensMax))
      const dimensions = readDimensions(requests, known.model)
      return { model: known, steering: steeringOf(inputs), inputs, dimensions, encoding: 'float' }
    },
    make(ask) {
      const units = countUnits(ask)
      const embeddings = valuesOf(ask).map((vector) => ({ values: Array.from(vector) }))
      // The first generation does not report its usage.
      const isTold = /embedding-2/.test(ask.model.model) && !ask.steering.has('nousage')
      const answer = {
        ...(isBatch ? { embeddings } : { embedding: embeddings[0] }),
        ...(isTold && { usageMetadata: { promptTokenCount: units.input } }),
      }
      return { units, headers: { 'content-type': jsonType }, body: { kind: 'whole', text: writeJson(answer) } }
    },
  }
}

const requestsMax = 100

const badBatch = (why: string): GoogleError => invalid(`* BatchEmbedContentsRequest.requests${why}\n`)

function readBatch(requests: readonly Fields[], model: string): readonly Fields[] {
  if (requests.length === 0) throw badBatch(': requests must not be empty.')
  if (requests.length > requestsMax) throw badBatch(`: at most ${requestsMax} requests can be in one batch`)
  const odd = requests.findIndex((request) => request.model !== `models/${model}`)
  if (odd >= 0) throw badBatch(`[${odd}].model: model '${textIn(requests[odd]?.model)}' must match models/${model}.`)
  return requests
}

/** Text beyond the model's input length is cut off silently. */
function readContent({ content: given }: Fields, index: number, tokensMax: number): readonly string[] {
  const text = contentText(fieldsIn(given).parts)
  if (text === '') throw invalid(`* EmbedContentRequest.content: content ${index} is empty.\n`)
  return splitTokens(text, tokensMax)
}

function readDimensions(requests: readonly Fields[], model: string): number {
  const { dimensionsDefault, dimensionsMax } = rulesFor(model)
  const asked = requests.find(({ outputDimensionality: dimensions }) => isGiven(dimensions))?.outputDimensionality
  if (asked === undefined) return dimensionsDefault
  if (Number(asked) >= 1 && Number(asked) <= dimensionsMax) return Number(asked)
  throw invalid(`outputDimensionality must be between 1 and ${dimensionsMax}, but got ${Number(asked)}.`)
}

/** The first generation truncates its vectors without normalising them again. */
function valuesOf(ask: EmbeddingAsk): readonly Float32Array[] {
  if (!/embedding-001/.test(ask.model.model)) return vectorsOf(ask)
  const { dimensionsMax } = rulesFor(ask.model.model)
  return vectorsOf({ ...ask, dimensions: dimensionsMax }).map((vector) => vector.subarray(0, ask.dimensions))
}
