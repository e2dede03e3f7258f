import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** What a proxy in front of a vendor answers: HTML instead of JSON. */
export function htmlPage(status: number, headers: Record<string, string> = {}): Response {
  const page = `<!DOCTYPE html>\n<html><head><title>${status}</title></head><body><h1>${status}</h1><hr>edge</body></html>\n`
  return new Response(page, { status, headers: { ...headers, 'content-type': 'text/html; charset=utf-8' } })
}

const edgeStatuses: ReadonlySet<number> = new Set([502, 520, 522, 524])

type Edge = { readonly also?: readonly number[]; readonly headers?: Record<string, string> }

/**
 * The page for a status that comes from a proxy in front of the vendor; undefined for a status of the vendor itself.
 * `also` lists what this vendor's proxy answers as well.
 */
export function edgePage(status: number, { also = [], headers }: Edge = {}): Response | undefined {
  return edgeStatuses.has(status) || also.includes(status) ? htmlPage(status, headers) : undefined
}

/** A bare status without a body. A redirect points to an address that a gateway must not follow with its credential. */
export function emptyAnswer(status: number): Response {
  const headers: Record<string, string> = status >= 300 ? { location: 'http://127.0.0.1:9/elsewhere' } : {}
  return new Response(null, { status, headers })
}

const bombBytes = 100 * 1024 * 1024
let bomb: Promise<Uint8Array<ArrayBuffer>> | undefined

/** Some 100 KB on the wire that unpack to 100 MB. Made once, off the event loop, when first asked for. */
export async function gzipBomb(): Promise<Response> {
  bomb ??= promisify(gzip)(Buffer.alloc(bombBytes)).then((packed) => new Uint8Array(packed))
  return new Response(await bomb, { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } })
}

/** Headers that a gateway must not pass on to its client. */
export function oddHeaders(headers: Headers): void {
  headers.append('set-cookie', '__cf_bm=secret; path=/; HttpOnly; Secure')
  headers.append('set-cookie', '_cfuvid=secret; path=/; HttpOnly; Secure')
  headers.set('openai-organization', 'operator-org')
  headers.set('x-turnpike-cost', '12345')
  headers.set('access-control-allow-origin', '*')
  for (let index = 1; index <= 50; index += 1) headers.set(`x-odd-${index}`, `odd value ${index}`)
}
