import { afterAll, expect, test } from 'bun:test'
import { closeAll, listen, openClient, until } from '../../test/support/http-server.ts'
import { asResponse } from '../base/http/reply.ts'
import { makeLog } from '../base/log.ts'
import type { WriteError } from '../capabilities/errors.ts'
import { Tally } from '../telemetry/tally.ts'
import { makeCors } from './cors.ts'
import { makeEdge } from './edge.ts'
import { takePieces } from './read-body.ts'
import type { Route } from './route.ts'

afterAll(closeAll)

const statuses: Readonly<Record<string, number>> = { 'not-found': 404, 'too-large': 413, 'too-many-headers': 431 }
const speaking =
  (voice: string): WriteError =>
  (error) => ({ status: statuses[error.kind] ?? 400, headers: {}, body: voice })
const route = { method: 'POST', auth: 'key', serve: () => new Response('served') } as const
const routes: readonly Route[] = [
  { ...route, path: '/v1/messages', writeError: speaking('messages'), speaksBelow: true },
  { ...route, path: '/v1/other', writeError: speaking('other') },
  { ...route, path: '/open', writeError: speaking('open'), auth: 'open' },
  { ...route, path: '/v1/broken', writeError: speaking('broken'), serve: () => Promise.reject(new Error('broken')) },
  {
    ...route,
    path: '/v1/out-of-files',
    writeError: ({ kind }) => ({ status: 400, headers: {}, body: kind }),
    serve: () => Promise.reject(Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })),
  },
  {
    ...route,
    path: '/v1/large',
    writeError: speaking('large'),
    serve: ({ request }) => takePieces(request, 4, () => Promise.resolve()).then(() => new Response('served')),
  },
]
const logged: string[] = []
let isDraining = false
const edge = makeEdge({
  routes,
  writeError: speaking('usual'),
  isProxy: () => false,
  cors: makeCors(['*']),
  log: makeLog({ level: 'info', write: (line) => logged.push(line) }),
  tally: new Tally(),
  isDraining: () => isDraining,
})
let headerCount = 0
const visit = async (request: Request) =>
  asResponse(
    await edge(request, {
      address: () => '127.0.0.1',
      headerCount: () => headerCount,
    } as unknown as Parameters<typeof edge>[1]),
  )
const ask = (path: string, method = 'POST', headers: Record<string, string> = {}) =>
  visit(new Request(`http://gateway.test${path}`, { method, headers: { host: 'gateway.test', ...headers } }))
const send = (path: string, body: BodyInit, headers: Record<string, string> = {}) =>
  visit(
    new Request(`http://gateway.test${path}`, { method: 'POST', headers: { host: 'gateway.test', ...headers }, body }),
  )

test.each([
  ['/v1/messages', 'served'],
  ['/v1/messages/batches', 'messages'],
  ['/v1/messages/batches/b_1/results', 'messages'],
  ['/v1/messages/', 'messages'],
  ['/v1/messagesabc', 'usual'],
  ['/v1/other/x', 'usual'],
  ['/x/v1/messages/x', 'usual'],
])('an unknown path is refused in the error format of its protocol: %s', async (path, voice) => {
  expect(await (await ask(path)).text()).toBe(voice)
})

test('responses to open paths and to preflights have a request id', async () => {
  const preflight = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
  const answers = [
    await ask('/open'),
    await ask('/v1/other', 'OPTIONS', preflight),
    await ask('/open', 'OPTIONS', preflight),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 204, 204])
  for (const { headers } of answers) expect(headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
})

test('pages of an allowed origin can read every response, also an error and the answer to a preflight', async () => {
  const origin = 'https://a.example'
  for (const [path, method] of [
    ['/v1/messages', 'POST'],
    ['/open', 'POST'],
    ['/nowhere', 'POST'],
    ['/v1/broken', 'POST'],
    ['/v1/other', 'OPTIONS'],
  ] as const) {
    const { headers } = await ask(path, method, { origin, 'access-control-request-method': 'POST' })
    expect([path, headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([path, origin, 'Origin'])
  }
})

test('while a node drains, every response closes its connection', async () => {
  for (const path of ['/v1/messages', '/open', '/nowhere']) {
    expect((await ask(path)).headers.get('connection')).toBeNull()
    isDraining = true
    expect((await ask(path)).headers.get('connection')).toBe('close')
    isDraining = false
  }
})

test('a request with more than a hundred headers is a 431', async () => {
  headerCount = 100
  expect((await ask('/v1/other')).status).toBe(200)
  headerCount = 101
  expect((await ask('/v1/other')).status).toBe(431)
  headerCount = 0
})

test('a bug is logged with the request id that its client was told, and a refusal is not logged', async () => {
  logged.length = 0
  const { headers } = await ask('/v1/broken')
  await ask('/nowhere')
  await send('/v1/large', '123456')
  expect(logged.map((line) => JSON.parse(line) as object)).toEqual([
    expect.objectContaining({
      level: 50,
      msg: 'a bug',
      request: headers.get('x-request-id'),
      cause: expect.stringContaining('Error: broken'),
    }),
  ] as never)
})

test('running out of open files is overloaded for the client, and logged as an error', async () => {
  logged.length = 0
  const answer = await ask('/v1/out-of-files')
  expect(await answer.text()).toBe('overloaded')
  expect(logged.map((line) => JSON.parse(line) as object)).toEqual([
    expect.objectContaining({
      level: 50,
      msg: 'no more files can be opened',
      request: answer.headers.get('x-request-id'),
      cause: 'Error: EMFILE: too many open files',
    }),
  ] as never)
})

test('a request body that was not read to its end closes its connection', async () => {
  const endless = await send('/v1/large', new Blob(['12', '34', '56']).stream())
  expect([endless.status, endless.headers.get('connection')]).toEqual([413, 'close'])
  // This body is refused by its declared length, and then read to its end, so that the connection can stay.
  const declared = await send('/v1/large', '123456', { 'content-length': '6' })
  expect([declared.status, declared.headers.get('connection')]).toEqual([413, null])
  expect((await send('/nowhere', '123456')).headers.get('connection')).toBeNull()
})

test('a refused client that waits for permission to send its body is answered at once, without permission', async () => {
  const { port } = listen({ answer: edge })
  const head = 'POST /nowhere HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n'
  const waiting = openClient(port, head)
  await until(waiting.isClosed)
  expect(waiting.text()).toStartWith('HTTP/1.1 404 ')
  expect(waiting.text()).toContain('\r\nconnection: close\r\n')
  // One that sent the body all the same may send another request.
  const hasty = openClient(port, `${head}abc`)
  await until(() => hasty.text().endsWith('usual'))
  expect(hasty.text()).not.toContain('connection: close')
})
