import type { TestGateway } from './gateway.ts'

export type Told = { readonly status: number; readonly headers: Headers; readonly body: Record<string, unknown> }

type Body = Record<string, unknown>

type Call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Told>

async function send(
  url: string,
  key: string | undefined,
  method: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<Told> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body }
}

/** The body of a call that must succeed. */
async function told<T = Body>(asked: Promise<Told>): Promise<T> {
  const { status, body } = await asked
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return body as T
}

/** A client with a bearer key that sends JSON: an operator at the admin port, or a customer at the public one. */
export function jsonClient(url: string, key: string | undefined) {
  const call: Call = (method, path, body, headers = {}) => send(url + path, key, method, body, headers)

  return {
    call,
    get: <T = Body>(path: string) => told<T>(call('GET', path)),
    post: <T = Body>(path: string, body: unknown) => told<T>(call('POST', path, body)),
    patch: <T = Body>(path: string, body: unknown) => told<T>(call('PATCH', path, body)),
    /** Every page of a list. */
    async all<T = Body>(path: string, limit = 100): Promise<T[]> {
      const found: T[] = []
      let next: string | null = null
      do {
        const mark = path.includes('?') ? '&' : '?'
        const after: string = next === null ? '' : `&after=${encodeURIComponent(next)}`
        const page: { data: T[]; next: string | null } = await told(call('GET', `${path}${mark}limit=${limit}${after}`))
        found.push(...page.data)
        next = page.next
      } while (next !== null)
      return found
    },
  }
}

export type JsonClient = ReturnType<typeof jsonClient>

export function operatorOf(gateway: TestGateway): JsonClient {
  return jsonClient(gateway.adminUrl, gateway.adminKey)
}

/** The error in Shape B. */
export function errorOf({ status, body }: Told) {
  const { type, param, code } = body['error'] as { type: string; param: string | null; code: string }
  return { status, type, param, code }
}
