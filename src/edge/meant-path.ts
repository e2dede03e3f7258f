import type { Route } from './route.ts'

// Longer ones are nobody's slip of the pen.
const pathCharactersMax = 100

/**
 * The path that a client may have meant whose base address is not quite right: without `/v1`, with it twice, with a whole
 * path in it, or with a slash too many.
 */
export function meantPath(routes: readonly Route[], method: string, path: string): string | undefined {
  if (path.length > pathCharactersMax) return undefined
  const plain = path.replace(/\/{2,}/g, '/').replace(/\/$/, '')
  return routes.find((route) => route.method === method && isMeant(route, plain))?.path
}

function isMeant({ path, auth }: Route, given: string): boolean {
  // Where an id belongs, anything could be one.
  if (path === '/' || path.includes('{')) return false
  const below = path.indexOf('/', 1)
  return auth === 'open' || below === -1 ? given === path : given.endsWith(path.slice(below))
}
