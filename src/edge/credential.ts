import type { HttpRequest } from '../base/http/request.ts'

// The name of a scheme is case-insensitive in HTTP.
const bearer = /^bearer ([^\s,]+)$/i

/** The bearer key, if the header holds exactly one; anything else counts as no key. */
export function bearerOf(request: HttpRequest): string | undefined {
  const header = request.headers.get('authorization')
  return header === null ? undefined : bearer.exec(header)?.[1]
}

/** For the paths of Anthropic's protocol, whose tools send either header. Where both come, only the bearer counts. */
export function bearerOrApiKeyOf(request: HttpRequest): string | undefined {
  if (request.headers.has('authorization')) return bearerOf(request)
  const key = request.headers.get('x-api-key')
  return key === null || key === '' || /[\s,]/.test(key) ? undefined : key
}
