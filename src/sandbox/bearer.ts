/** The key that a call shows as a bearer token, as most vendors want it. */
export function bearerOf(headers: Headers): string | undefined {
  return /^Bearer +(\S.*)$/i.exec(headers.get('authorization') ?? '')?.[1]
}
