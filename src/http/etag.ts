import type { HttpRequest } from '../base/http/request.ts'

/** Whether `If-None-Match` has this tag (RFC 9110, section 13.1.2), which may be one of several, or weak. */
export function hasTag({ headers }: HttpRequest, etag: string): boolean {
  const known = headers.get('if-none-match')?.split(',') ?? []
  return known.some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')))
}
