import type { Route } from './route.ts'

// A longer path is not a slip of the pen.
const pathCharactersMax = 100

/**
 * The path that a client may have meant if its base address is slightly wrong: without `/v1`, with `/v1` twice, with a
 * whole path in it, or with an extra slash. For a path of an older client it is the one that has replaced it, and for
 * the base address alone the first path below it.
 */
export function meantPath(routes: readonly Route[], method: string, path: string): string | undefined {
  if (path.length > pathCharactersMax) return undefined
  const plain = path.replace(/\/{2,}/g, '/').replace(/\/$/, '')
  // Paths with an id are left out, because anything could be an id.
  const fixed = routes.filter((route) => route.method === method && !route.path.includes('{'))
  const below = fixed.filter((route) => route.path.startsWith(`${plain}/`)).toSorted((a, b) => depth(a) - depth(b))
  const meant = fixed.find((route) => isMeant(route, plain)) ?? fixed.find((route) => hasReplaced(route, plain))
  return (meant ?? below[0])?.path
}

function depth({ path }: Route): number {
  return path.split('/').length
}

/**
 * Compares what follows the version, before which a base address may have too little or too much. Open paths have none.
 */
function isMeant({ path, auth }: Route, given: string): boolean {
  if (path === '/') return false
  const below = path.indexOf('/', 1)
  return auth === 'open' || below === -1 ? given === path : given.endsWith(path.slice(below))
}

function hasReplaced({ replaces }: Route, given: string): boolean {
  return replaces?.some((ending) => given.endsWith(ending)) === true
}
