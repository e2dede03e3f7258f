import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Steering } from '../steering.ts'
import { errorForCode, errorForStatus, htmlPage, VendorError } from './errors.ts'

/**
 * The answers that are no answers: refusals are thrown, pages and other oddities returned, and undefined means that
 * nothing of the kind was asked for. None of them costs anything.
 */
export async function faultFor(steering: Steering, key: string): Promise<Response | undefined> {
  const code = steering.text('fail')
  if (code !== undefined) throw errorForCode(code)
  if (steering.has('leak')) {
    const message = `Incorrect API key provided: ${key}. You can find your API key at https://platform.openai.com/account/api-keys.`
    throw new VendorError({ status: 401, message, code: 'invalid_api_key' })
  }
  const status = steering.number('status')
  if (status !== undefined && status >= 400) throw errorForStatus(status)
  if (status !== undefined && status !== 200) return emptyAnswer(status)
  if (steering.has('html')) return htmlPage(200)
  if (steering.has('error200')) {
    const error = { message: 'Something went wrong.', type: 'server_error', param: null, code: 'internal_error' }
    return Response.json({ error })
  }
  return steering.has('gzip') ? gzipBomb() : undefined
}

/** A status that carries no answer; a redirect leads where no gateway should follow with a key in its hand. */
function emptyAnswer(status: number): Response {
  const headers: Record<string, string> = status >= 300 ? { location: 'http://127.0.0.1:9/elsewhere' } : {}
  return new Response(null, { status, headers })
}

const bombBytes = 100 * 1024 * 1024
let bomb: Promise<Uint8Array<ArrayBuffer>> | undefined

/** Some 100 KB on the wire that unpack to 100 MB. Made once, off the event loop, when first asked for. */
async function gzipBomb(): Promise<Response> {
  bomb ??= promisify(gzip)(Buffer.alloc(bombBytes)).then((packed) => new Uint8Array(packed))
  return new Response(await bomb, { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } })
}

/** Headers no client of a gateway should get to see. */
export function oddHeaders(headers: Headers): void {
  headers.append('set-cookie', '__cf_bm=secret; path=/; HttpOnly; Secure')
  headers.append('set-cookie', '_cfuvid=secret; path=/; HttpOnly; Secure')
  headers.set('openai-organization', 'operator-org')
  headers.set('x-turnpike-cost', '12345')
  headers.set('access-control-allow-origin', '*')
  for (let index = 1; index <= 50; index += 1) headers.set(`x-odd-${index}`, `odd value ${index}`)
}
