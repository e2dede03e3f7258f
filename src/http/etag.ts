/** Whether the caller has what this tag stands for (RFC 9110, section 13.1.2): of several, and of a weak one too. */
export function hasTag({ headers }: Request, etag: string): boolean {
  const known = headers.get('if-none-match')?.split(',') ?? []
  return known.some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')))
}
