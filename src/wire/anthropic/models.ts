import { badRequest } from '../../base/errors.ts'
import type { ListedModel } from '../../capabilities/listing.ts'

const pageDefault = 20
const pageMax = 1_000

/** A page of the model list, in the order of the list; `after_id` and `before_id` name the model next to the page. */
export function listMessagesModels(models: readonly ListedModel[], query: URLSearchParams) {
  const limit = readLimit(query.get('limit'))
  const after = query.get('after_id')
  const before = query.get('before_id')
  if (before !== null && after === null) {
    const end = placeOf(models, before, 'before_id')
    const page = models.slice(Math.max(0, end - limit), end)
    return pageOf(page, page.length < end)
  }
  const start = after === null ? 0 : placeOf(models, after, 'after_id') + 1
  const page = models.slice(start, start + limit)
  return pageOf(page, start + page.length < models.length)
}

function pageOf(page: readonly ListedModel[], hasMore: boolean) {
  return {
    data: page.map(showMessagesModel),
    has_more: hasMore,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  }
}

export function showMessagesModel({ id, created, contextTokens, outputTokensMax, endDate }: ListedModel) {
  return {
    type: 'model',
    id,
    display_name: id,
    created_at: new Date(created * 1000).toISOString(),
    capabilities: null,
    // Never `retired`: every listed model is sold, also where the date of its announced end has passed.
    lifecycle: endDate === undefined ? 'active' : 'deprecated',
    line: null,
    deprecated_at: null,
    retires_at: endDate === undefined ? null : new Date(endDate).toISOString(),
    max_input_tokens: contextTokens,
    max_tokens: outputTokensMax,
  }
}

function readLimit(text: string | null): number {
  if (text === null) return pageDefault
  const limit = Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= pageMax) return limit
  throw badRequest(`limit: a whole number from 1 to ${pageMax}.`, 'limit')
}

function placeOf(models: readonly ListedModel[], id: string, param: string): number {
  const place = models.findIndex((model) => model.id === id)
  if (place === -1) throw badRequest(`${param}: no such model in the list.`, param)
  return place
}
