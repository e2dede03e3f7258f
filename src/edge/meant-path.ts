import { nearest, slipsBetween } from '../base/slips.ts'
import type { Route } from './route.ts'

// A longer path is not a slip of the pen.
const pathCharactersMax = 100

/**
 * The route that a client may have meant if its base address is slightly wrong (without `/v1`, with `/v1` twice, with a
 * whole path in it, or with an extra slash), or a letter or two of the path. For a path of an older client it is the
 * one that has replaced it, and for the base address alone the first path below it.
 */
export function meantRoute(routes: readonly Route[], method: string, path: string): Route | undefined {
  if (path.length > pathCharactersMax) return undefined
  const plain = path.replace(/\/{2,}/g, '/').replace(/\/$/, '')
  const meant = meantBy(method, routes, plain)
  // A path that is opened in a browser is asked for by GET, whatever it takes.
  return meant === undefined && method === 'GET' ? meantBy('POST', routes, plain) : meant
}

function meantBy(method: string, routes: readonly Route[], plain: string): Route | undefined {
  // Paths with an id are left out, because anything could be an id.
  const fixed = routes.filter((route) => route.method === method && !route.path.includes('{'))
  const below = fixed.filter((route) => route.path.startsWith(`${plain}/`)).toSorted((a, b) => depth(a) - depth(b))
  return (
    fixed.find((route) => isMeant(route, plain)) ??
    fixed.find((route) => hasReplaced(route, plain)) ??
    below[0] ??
    nearest(fixed, (route) => slipsTo(route, plain))
  )
}

function depth({ path }: Route): number {
  return path.split('/').length
}

/** What follows the version, before which a base address may have too little or too much. Open paths have none. */
function afterVersion({ path, auth }: Route): string | undefined {
  const below = path.indexOf('/', 1)
  return auth === 'open' || below === -1 ? undefined : path.slice(below)
}

function isMeant(route: Route, given: string): boolean {
  const ending = afterVersion(route)
  return ending === undefined ? route.path !== '/' && given === route.path : given.endsWith(ending)
}

function slipsTo(route: Route, given: string): number {
  const ending = afterVersion(route)
  if (ending === undefined) return slipsBetween(given, route.path)
  const steps = ending.split('/').length - 1
  return slipsBetween(`/${given.split('/').slice(-steps).join('/')}`, ending)
}

function hasReplaced({ replaces }: Route, given: string): boolean {
  return replaces?.some((ending) => given.endsWith(ending)) === true
}
