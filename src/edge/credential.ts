const bearer = /^[Bb]earer ([^\s,]+)$/

/** The bearer key, if the header is exactly one of them. Anything else is no key at all. */
export function bearerOf(request: Request): string | undefined {
  const header = request.headers.get('authorization')
  return header === null ? undefined : bearer.exec(header)?.[1]
}
