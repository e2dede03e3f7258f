import type { Artifact, Artifacts } from '../artifacts/artifacts.ts'
import type { Clock } from '../base/clock.ts'
import { badRequest } from '../base/errors.ts'
import { emptyReply, type HttpResponse } from '../base/http/reply.ts'
import type { WriteError } from '../capabilities/errors.ts'
import type { Visit } from '../edge/route.ts'
import { queryOf } from '../edge/target.ts'
import { writeError } from '../wire/openai/errors.ts'
import { hasTag } from './etag.ts'
import { readRange } from './range.ts'

/**
 * What a vendor made is shown, never run: its type is one of a table, the browser must not guess another, and whatever
 * it renders is in a sandbox without an origin.
 */
const harmless = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  // The link is a credential, so it must not be sent as a referrer.
  'referrer-policy': 'no-referrer',
  'accept-ranges': 'bytes',
}

/** `GET /artifacts/{id}`: a kept result, or a part of it, for every holder of its signed link. */
export function serveArtifact(parts: { artifacts: Artifacts; clock: Clock }) {
  return async ({ request, id, responseHeaders }: Visit): Promise<HttpResponse> => {
    const query = queryOf(request)
    const link = { id, expires: query.get('expires'), signature: query.get('signature') }
    const artifact = await parts.artifacts.find(link)
    const { bytes } = artifact
    const etag = `"${id}"`
    const headers = { ...headersOf(artifact, id, parts.clock.now()), etag }
    if (hasTag(request, etag)) return emptyReply(304, headers)

    const isHead = request.method === 'HEAD'
    const isSame = (request.headers.get('if-range') ?? etag) === etag
    // Only GET has ranges: RFC 9110 (section 14.2) has a server ignore those of other methods.
    const range = isSame && !isHead ? readRange(request.headers.get('range'), bytes) : 'whole'
    if (range === 'beyond') {
      responseHeaders['content-range'] = `bytes */${bytes}`
      throw badRequest('The range starts beyond the end of the result.', 'Range', 'range_not_satisfiable')
    }
    const { from, to } = range === 'whole' ? { from: 0, to: bytes } : range
    const part = range === 'whole' ? {} : { 'content-range': `bytes ${from}-${to - 1}/${bytes}` }
    // The body of a response to HEAD is never read, so nothing is opened for it.
    const body = isHead ? null : await artifact.read(from, to)
    return new Response(body, {
      status: range === 'whole' ? 200 : 206,
      headers: { ...headers, ...part, 'content-length': String(to - from) },
    })
  }
}

function headersOf({ mediaType, expiresAt }: Artifact, id: string, now: number) {
  const isShown = /^(?:image|audio|video)\//.test(mediaType)
  return {
    ...harmless,
    'content-type': mediaType,
    // An id is letters, digits, an underscore and a dot: nothing in it could end the quotes.
    'content-disposition': `${isShown ? 'inline' : 'attachment'}; filename="${id}"`,
    'cache-control': `private, max-age=${Math.max(0, Math.floor((expiresAt - now) / 1000))}`,
  }
}

const statuses: Readonly<Record<string, number>> = { invalid_link: 403, link_expired: 403, range_not_satisfiable: 416 }

/** The common shape, with the statuses that only links and ranges have. */
export const writeArtifactError: WriteError = (error, requestId) => {
  const written = writeError(error, requestId)
  return { ...written, status: statuses[error.details.code ?? ''] ?? written.status }
}
