import { badRequest } from '../base/errors.ts'
import type { HttpRequest } from '../base/http/request.ts'

const host = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/**
 * The path by which a request is routed, cut from its URL without parsing. A Host header that is not one plain host, or
 * that comes twice, could move the cut, so it is refused first, for every route.
 */
export function pathOf(request: HttpRequest): string {
  const given = request.headers.get('host')
  if (given === null || !host.test(given)) throw badRequest('The Host header is not a host.', undefined, 'invalid_host')
  const { url } = request
  const start = url.indexOf('/', 'https://'.length)
  if (start === -1) return '/'
  // Clients send nothing from a # on; if one does, it counts as part of the path.
  const end = url.indexOf('?', start)
  return end === -1 ? url.slice(start) : url.slice(start, end)
}

/**
 * The query of a request, cut like the path. A whole URL is not parsed for it, because some names that look like hosts,
 * such as 256.256.256.256, would fail there.
 */
export function queryOf({ url }: HttpRequest): URLSearchParams {
  const start = url.indexOf('?')
  return new URLSearchParams(start === -1 ? '' : url.slice(start + 1))
}

/** An id that cannot be decoded becomes '', which names nothing. */
export function decodeId(raw: string): string {
  try {
    return decodeURIComponent(raw)
  } catch {
    return ''
  }
}
