import { isObject } from '../base/json.ts'
import { idPattern } from '../catalogue/schema.ts'
import { vendors } from '../vendors/index.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { localCredential, type Channel } from './channels.ts'
import type { Transport } from './transport.ts'

/** A model server found on the operator's own machine. */
export type LocalServer = { readonly channel: Channel; readonly upstreamModels: readonly string[] }

// A server on this machine answers at once, and one that is not there is not worth a longer wait.
const answerMsMax = 500
const timeouts = { connectMs: answerMsMax, firstByteMs: answerMsMax, idleMs: answerMsMax, totalMs: answerMsMax }
const modelsMax = 1_000
const answerBytesMax = 4 * 1024 * 1024

/**
 * Asks the usual ports of local model servers what they serve, except for `ownPort`, which is our own. Uses the
 * transport for vendors, because the runtime's own fetch would go through a proxy of the environment.
 */
export async function discoverLocalServers(
  transport: Transport,
  ownPort: number,
  among: Iterable<Vendor> = vendors.values(),
): Promise<LocalServer[]> {
  const local = [...among].filter((vendor) => vendor.local && new URL(vendor.baseUrl).port !== String(ownPort))
  const found = await Promise.all(
    local.map(async (vendor) => {
      const upstreamModels = await listModels(transport, vendor.baseUrl).catch(() => [])
      const { id, baseUrl } = vendor
      const channel = { id, vendor, baseUrl, credentials: [localCredential], weight: 1, priority: 0 }
      return { channel, upstreamModels }
    }),
  )
  return found.filter(({ upstreamModels }) => upstreamModels.length > 0)
}

async function listModels(transport: Transport, baseUrl: string): Promise<string[]> {
  const call = { method: 'GET', url: `${baseUrl}/models`, headers: {} } as const
  const sent = await transport.send(call, timeouts, new AbortController().signal, 'new')
  if (sent.kind === 'failed') return []
  const answer = await sent.exchange.readAll(answerBytesMax)
  const body: unknown = sent.exchange.status === 200 ? JSON.parse(Buffer.from(answer).toString()) : undefined
  if (!isObject(body) || !Array.isArray(body['data'])) return []
  const ids: string[] = []
  for (const model of body['data'].slice(0, modelsMax)) {
    if (isObject(model) && typeof model['id'] === 'string') ids.push(model['id'])
  }
  return ids
}

/** Our spelling of a vendor's id: lower case, with hyphens for what would not survive in a path or a glob, if valid. */
export function ourModelId(upstreamModel: string): string | undefined {
  const id = upstreamModel
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
  return idPattern.test(id) ? id : undefined
}
