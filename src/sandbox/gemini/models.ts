import { isSoldFor, isThinker, type SandboxModel } from '../model.ts'
import type { Call, World } from '../protocol.ts'
import { GoogleError, invalid } from './errors.ts'

const pageSizeDefault = 50
const pageSizeMax = 1_000

/** One page of the models in catalogue order. The page token names the first model of the next page. */
export function listModels({ vendor, request }: Call, world: World): unknown {
  const { searchParams } = new URL(request.url)
  const models = [...(world.models.get(vendor)?.values() ?? [])]
  const asked = Number(searchParams.get('pageSize') || pageSizeDefault)
  if (!Number.isInteger(asked) || asked < 0) throw invalid('page_size must be a non-negative integer.')
  const token = searchParams.get('pageToken')
  const start = token ? models.findIndex(({ model }) => tokenFor(model) === token) : 0
  if (start < 0) throw invalid('Invalid page token.')
  const end = start + Math.min(asked || pageSizeDefault, pageSizeMax)
  const next = models[end]
  return { models: models.slice(start, end).map(describe), ...(next && { nextPageToken: tokenFor(next.model) }) }
}

export function getModel(vendor: string, world: World, id: string): unknown {
  const known = world.models.get(vendor)?.get(id)
  if (known) return describe(known)
  throw new GoogleError({ status: 404, message: `Model is not found: models/${id} for api version v1beta` })
}

function tokenFor(model: string): string {
  return Buffer.from(`from ${model}`).toString('base64url')
}

function methodsOf(sold: SandboxModel): readonly string[] {
  if (isSoldFor(sold, 'embeddings')) return ['embedContent', 'batchEmbedContents', 'countTokens']
  if (sold.model.startsWith('imagen')) return ['predict']
  return isSoldFor(sold, 'video') ? ['predictLongRunning'] : ['generateContent', 'countTokens']
}

function describe(sold: SandboxModel): unknown {
  const { model, contextTokens, outputTokensMax } = sold
  return {
    name: `models/${model}`,
    version: '001',
    displayName: model,
    description: `${model}, simulated`,
    inputTokenLimit: contextTokens,
    outputTokenLimit: outputTokensMax,
    supportedGenerationMethods: methodsOf(sold),
    temperature: 1,
    topP: 0.95,
    topK: 64,
    maxTemperature: 2,
    ...(isThinker(sold) && { thinking: true }),
  }
}
