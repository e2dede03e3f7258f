const bearer = /^[Bb]earer ([^\s,]+)$/

/** The bearer key, if the header is exactly one of them. Anything else is no key at all. */
export function bearerOf(request: Request): string | undefined {
  const header = request.headers.get('authorization')
  return header === null ? undefined : bearer.exec(header)?.[1]
}

/** On the paths of Anthropic's protocol, whose tools send either: where both come, the bearer alone counts. */
export function bearerOrApiKeyOf(request: Request): string | undefined {
  if (request.headers.has('authorization')) return bearerOf(request)
  const key = request.headers.get('x-api-key')
  return key === null || key === '' || /[\s,]/.test(key) ? undefined : key
}
