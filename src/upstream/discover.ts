import { isObject } from '../base/json.ts'
import { vendors } from '../vendors/index.ts'
import type { Channel } from './channels.ts'

/** A model server found on the operator's own machine. */
export type LocalServer = { readonly channel: Channel; readonly upstreamModels: readonly string[] }

// A server on this machine answers at once; nobody waits for one that is not there.
const answerMsMax = 500
const modelsMax = 1_000

/** Asks the usual ports of local model servers what they serve. `ownPort` is not asked: it is us. */
export async function discoverLocalServers(ownPort: number): Promise<LocalServer[]> {
  const local = [...vendors.values()].filter(
    (vendor) => vendor.local && new URL(vendor.baseUrl).port !== String(ownPort),
  )
  const found = await Promise.all(
    local.map(async (vendor) => {
      const upstreamModels = await listModels(vendor.baseUrl).catch(() => [])
      const channel = { id: vendor.id, vendor, baseUrl: vendor.baseUrl, credentials: ['local'], weight: 1, priority: 0 }
      return { channel, upstreamModels }
    }),
  )
  return found.filter(({ upstreamModels }) => upstreamModels.length > 0)
}

async function listModels(baseUrl: string): Promise<string[]> {
  const response = await fetch(`${baseUrl}/models`, { signal: AbortSignal.timeout(answerMsMax), redirect: 'error' })
  const body: unknown = response.ok ? await response.json() : undefined
  if (!isObject(body) || !Array.isArray(body['data'])) return []
  const ids: string[] = []
  for (const model of body['data'].slice(0, modelsMax)) {
    if (isObject(model) && typeof model['id'] === 'string') ids.push(model['id'])
  }
  return ids
}

// What the catalogue takes for an id.
const idCharactersMax = 128

/** Our spelling of a vendor's id: lower case, hyphens for what would not survive in a path or a glob; or none at all. */
export function ourModelId(upstreamModel: string): string | undefined {
  const id = upstreamModel
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
  return id === '' || id.length > idCharactersMax ? undefined : id
}
