import { decoded } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import type { Call, World } from '../protocol.ts'
import { findModel } from './answer.ts'
import { invalid, MessagesError, writeError } from './errors.ts'
import { readHead } from './head.ts'

const limitUsual = 20
const limitMax = 1_000

/** One page of the models in order. The SDK asks for the next page with `after_id`. */
export function listModels(call: Call, world: World): Response {
  return answer(call, () => {
    const models = [...(world.models.get(call.vendor)?.values() ?? [])]
    const { searchParams } = new URL(call.request.url)
    const limit = readLimit(searchParams.get('limit'))
    const before = indexOf(models, 'before_id', searchParams.get('before_id'))
    const after = indexOf(models, 'after_id', searchParams.get('after_id'))
    const end = before ?? models.length
    const start = before === undefined ? (after ?? -1) + 1 : Math.max((after ?? -1) + 1, before - limit)
    const page = models.slice(start, Math.min(end, start + limit))
    return {
      data: page.map(describe),
      has_more: before === undefined ? start + page.length < end : start > 0,
      first_id: page[0]?.model ?? null,
      last_id: page.at(-1)?.model ?? null,
    }
  })
}

export function showModel(call: Call, world: World, encoded: string): Response {
  return answer(call, () => describe(findModel(world, call.vendor, decoded(encoded))))
}

function answer(call: Call, find: () => unknown): Response {
  try {
    readHead(call.request.headers)
    return Response.json(find(), { headers: { 'request-id': 'req_011models' } })
  } catch (error) {
    if (error instanceof MessagesError) return writeError(error, call.path)
    throw error
  }
}

function readLimit(text: string | null): number {
  if (text === null) return limitUsual
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(limit >= 1)) throw invalid('limit', 'Input should be greater than or equal to 1')
  if (limit > limitMax) throw invalid('limit', `Input should be less than or equal to ${limitMax}`)
  return limit
}

function indexOf(models: readonly SandboxModel[], name: string, id: string | null): number | undefined {
  if (id === null) return undefined
  const index = models.findIndex(({ model }) => model === id)
  if (index < 0) throw invalid(name, `no model ${id}`)
  return index
}

function describe({ model, contextTokens, outputTokensMax }: SandboxModel): unknown {
  return {
    type: 'model',
    id: model,
    display_name: model,
    created_at: '2026-01-01T00:00:00Z',
    capabilities: null,
    lifecycle: 'active',
    line: null,
    deprecated_at: null,
    retires_at: null,
    max_input_tokens: contextTokens,
    max_tokens: outputTokensMax,
  }
}
