import { badKey, GoogleError } from './errors.ts'

/** The key comes in its own header or in the query; Google accepts only OAuth tokens as bearer tokens. */
export function readKey(request: Request): string {
  const key = request.headers.get('x-goog-api-key') || new URL(request.url).searchParams.get('key')
  if (key === 'bad-key') throw badKey()
  if (key) return key
  if (request.headers.has('authorization')) {
    const message =
      'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.'
    throw new GoogleError({ status: 401, message })
  }
  const message =
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."
  throw new GoogleError({ status: 403, message })
}
