/** Which models a key may use: exact ids or globs with `*`. Null is every model. */
export type Scope = readonly string[] | null

export function allows(scope: Scope, model: string): boolean {
  return scope === null || scope.some((pattern) => matches(pattern, model))
}

/** A glob by hand, since a pattern of an operator turned into a regular expression could take exponential time. */
function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return pattern === text
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false
  let from = first.length
  const end = text.length - last.length
  for (const piece of rest) {
    const found = text.indexOf(piece, from)
    if (found === -1 || found + piece.length > end) return false
    from = found + piece.length
  }
  return true
}
