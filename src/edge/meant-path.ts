import type { Route } from './route.ts'

// Longer ones are nobody's slip of the pen.
const pathCharactersMax = 100

/**
 * The path that a client may have meant whose base address is not quite right: without `/v1`, with it twice, with a whole
 * path in it, or with a slash too many. Who asks for that address alone is told the first path below it.
 */
export function meantPath(routes: readonly Route[], method: string, path: string): string | undefined {
  if (path.length > pathCharactersMax) return undefined
  const plain = path.replace(/\/{2,}/g, '/').replace(/\/$/, '')
  // Where an id belongs, anything could be one.
  const fixed = routes.filter((route) => route.method === method && !route.path.includes('{'))
  const below = fixed.filter((route) => route.path.startsWith(`${plain}/`)).toSorted((a, b) => depth(a) - depth(b))
  return (fixed.find((route) => isMeant(route, plain)) ?? below[0])?.path
}

function depth({ path }: Route): number {
  return path.split('/').length
}

function isMeant({ path, auth }: Route, given: string): boolean {
  if (path === '/') return false
  const below = path.indexOf('/', 1)
  return auth === 'open' || below === -1 ? given === path : given.endsWith(path.slice(below))
}
