import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { emptyReply, Reply } from '../../base/http/reply.ts'
import { sourceFile } from '../../base/program-files.ts'
import type { Visit } from '../../edge/route.ts'
import { hasTag } from '../etag.ts'

type Page = { readonly body: string; readonly headers: Readonly<Record<string, string>> & { readonly etag: string } }

// Browsers revalidate every time, at the price of a 304, so that a new version shows at once.
const shared = { 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }

/**
 * `GET /openapi.json`: the contract, as `npm run openapi` wrote it. Its paths are relative to the origin that it was
 * read from, unless the operator has set `publicUrl`: a proxy may serve us below a path, which readers of the contract
 * would lose.
 */
export function serveContract(publicUrl: string | undefined): (visit: Visit) => Reply {
  return servePage(() => {
    const written = read('./openapi.json')
    const body = publicUrl === undefined ? written : withServer(written, publicUrl)
    return { body, headers: { ...shared, 'content-type': 'application/json', etag: etagOf(body) } }
  })
}

function withServer(contract: string, url: string): string {
  return JSON.stringify({ ...(JSON.parse(contract) as object), servers: [{ url }] }, null, 2)
}

/** `GET /docs`: the reference. Its policy allows the one style by its hash, and nothing else to load or run. */
export function serveReference(address: string): (visit: Visit) => Reply {
  return servePage(() => makeReferencePage(address))
}

function makeReferencePage(address: string): Page {
  const body = read('./reference.html').replace('{address}', () =>
    address.replaceAll('&', '&amp;').replaceAll('<', '&lt;'),
  )
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
}

/** `GET /` leads a browser to the reference. The address is relative, because a proxy may serve us below a path. */
export function serveLanding(): Reply {
  return emptyReply(302, { location: 'docs' })
}

/** The page is read when it is first asked for, so that a start does not wait for it. */
function servePage(load: () => Page): (visit: Visit) => Reply {
  let page: Page | undefined
  return ({ request }) => {
    page ??= load()
    const { body, headers } = page
    if (hasTag(request, headers.etag)) return emptyReply(304, headers)
    return new Reply(200, { ...headers }, Buffer.from(body))
  }
}

function read(name: string): string {
  return readFileSync(sourceFile(`http/openapi/${name}`), 'utf8')
}

function etagOf(body: string): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
}
