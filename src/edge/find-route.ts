import { RegExpRouter } from 'hono/router/reg-exp-router'
import type { HttpRequest } from '../base/http/request.ts'
import { meantRoute } from './meant-path.ts'
import type { Route } from './route.ts'
import { decodeId, pathOf } from './target.ts'

/** What a request's method and path lead to. */
export type Found =
  | { readonly kind: 'path'; readonly route: Route; readonly id: string }
  | { readonly kind: 'wrong-method'; readonly allow: string; readonly route: Route }
  /** `route`: the route above this path whose protocol its error is written in. */
  | {
      readonly kind: 'nothing'
      readonly shownPath: string
      readonly meant: Route | undefined
      readonly route: Route | undefined
    }

const shownPathCharactersMax = 100

type Last = { readonly method: string; readonly url: string; readonly host: string | null; readonly found: Found }

/** Finds the route of a request, which is nearly always that of the request before. */
export function makeFinder(routes: readonly Route[]): (request: HttpRequest) => Found {
  const find = makeSearch(routes)
  let last: Last | undefined
  return (request) => {
    const { method, url } = request
    const host = request.headers.get('host')
    // The Host is compared too: one that is not a host could make another path end in the same URL.
    if (last?.url === url && last.method === method && last.host === host) return last.found
    const found = find(request)
    last = { method, url, host, found }
    return found
  }
}

function makeSearch(routes: readonly Route[]): (request: HttpRequest) => Found {
  const router = new RegExpRouter<Route>()
  /** Paths without an id are found without the router, because most requests are for one of them. */
  const fixed = new Map<string, Found>()
  for (const route of routes) {
    router.add(route.method, route.path.replace('{id}', ':id'), route)
    if (!route.path.includes('{')) fixed.set(`${route.method} ${route.path}`, { kind: 'path', route, id: '' })
  }
  const methods = [...new Set(routes.map(({ method }) => method))]

  const match = (method: string, path: string) => {
    const [matched, stash] = router.match(method, path)
    const [first] = matched
    if (first === undefined) return undefined
    const [route, params] = first
    const index = params['id']
    const raw = typeof index === 'number' ? stash?.[index] : index
    return { route, id: raw === undefined ? '' : decodeId(raw) }
  }

  return (request) => {
    const path = pathOf(request)
    // A probe that sends HEAD is answered like a GET.
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const known = fixed.get(`${method} ${path}`)
    if (known !== undefined) return known
    const found = match(method, path)
    if (found !== undefined) return { kind: 'path', ...found }
    const others = methods.flatMap((other) => match(other, path)?.route ?? [])
    const [other] = others
    if (other !== undefined) {
      const allowed = others.flatMap((one) => (one.method === 'GET' ? [one.method, 'HEAD'] : [one.method]))
      return { kind: 'wrong-method', allow: allowed.join(', '), route: other }
    }
    const above = routes.find((route) => route.speaksBelow === true && path.startsWith(`${route.path}/`))
    const shownPath = path.slice(0, shownPathCharactersMax)
    return { kind: 'nothing', shownPath, meant: meantRoute(routes, method, path), route: above }
  }
}
