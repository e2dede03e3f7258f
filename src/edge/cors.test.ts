import { expect, test } from 'bun:test'
import { makeCors } from './cors.ts'

const request = (origin: string | undefined, more: Record<string, string> = {}, method = 'GET') =>
  new Request('http://x/v1/models', { method, headers: { ...(origin !== undefined && { origin }), ...more } })

test('without an origin in the settings there is no cross-origin access at all', () => {
  expect(makeCors([])).toBeUndefined()
})

test.each([
  ['https://a.example', 'https://a.example'],
  ['https://b.example', null],
  ['https://a.example.evil', null],
  ['null', null],
  [undefined, null],
])('a response to the origin %p allows %p', (origin, allowed) => {
  const response = new Response()
  makeCors(['https://a.example'])?.allow(request(origin), response)
  expect(response.headers.get('access-control-allow-origin')).toBe(allowed)
  expect(response.headers.get('vary')).toBe('Origin')
})

function named(origin: string | undefined): string | null {
  const response = new Response()
  makeCors(['*'])?.allow(request(origin), response)
  return response.headers.get('access-control-allow-origin')
}

test('when all origins are allowed, a response names the origin of its request, if any', () => {
  expect([named('https://b.example'), named(undefined)]).toEqual(['https://b.example', null])
})

test('only a complete preflight request is answered as a preflight', () => {
  const cors = makeCors(['https://a.example'])
  expect(cors?.preflight(request('https://a.example'))).toBeUndefined()
  expect(cors?.preflight(request('https://a.example', {}, 'OPTIONS'))).toBeUndefined()
  const preflight = request('https://a.example', { 'access-control-request-method': 'POST' }, 'OPTIONS')
  expect(cors?.preflight(preflight)?.status).toBe(204)
  preflight.headers.set('access-control-request-headers', 'authorization, x-own')
  expect(cors?.preflight(preflight)?.headers.all).toMatchObject({
    'access-control-allow-methods': 'GET, POST, DELETE',
    'access-control-allow-headers': 'authorization, x-own',
  })
})

test('a page may read the headers of request id, cost, limits and retries', () => {
  const response = new Response()
  makeCors(['https://a.example'])?.allow(request('https://a.example'), response)
  const exposed = response.headers.get('access-control-expose-headers')?.split(', ')
  for (const name of ['x-request-id', 'request-id', 'x-turnpike-cost', 'x-ratelimit-remaining-tokens']) {
    expect(exposed).toContain(name)
  }
  for (const name of ['retry-after', 'x-should-retry', 'idempotent-replayed']) expect(exposed).toContain(name)
})

test('a page may read the headers of content range and tool session', () => {
  const response = new Response()
  makeCors(['https://a.example'])?.allow(request('https://a.example'), response)
  const exposed = response.headers.get('access-control-expose-headers')?.split(', ')
  expect(exposed).toContain('content-range')
  expect(exposed).toContain('mcp-session-id')
})
