import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Visit } from '../../edge/route.ts'
import { hasTag } from '../etag.ts'

type Page = { readonly body: string; readonly headers: Readonly<Record<string, string>> & { readonly etag: string } }

// Revalidated every time, at the price of a 304: a new version shows at once.
const shared = { 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }

/** `GET /openapi.json`: the contract, as `npm run openapi` wrote it. */
export const serveContract = servePage(() => {
  const body = read('./openapi.json')
  return { body, headers: { ...shared, 'content-type': 'application/json', etag: etagOf(body) } }
})

/** `GET /docs`: the reference. Its one style is named by its hash; nothing else may load or run, whatever is in the page. */
export const serveReference = servePage(() => {
  const body = read('./reference.html')
  const style = /<style>(.*?)<\/style>/s.exec(body)?.[1] ?? ''
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
  const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy, etag: etagOf(body) }
  return { body, headers: { ...shared, ...headers } }
})

/** `GET /`: whoever opens the address in a browser wants to read about it. A proxy may serve us below a path. */
export function serveLanding(): Response {
  return new Response(null, { status: 302, headers: { location: 'docs' } })
}

/** Read when first asked for: a start need not wait for pages. */
function servePage(load: () => Page): (visit: Visit) => Response {
  let page: Page | undefined
  return ({ request }) => {
    page ??= load()
    const { headers } = page
    if (hasTag(request, page.headers.etag)) return new Response(null, { status: 304, headers })
    return new Response(page.body, { headers })
  }
}

function read(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8')
}

function etagOf(body: string): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
}
