import { expect, test } from 'bun:test'
import { silentLog } from '../base/log.ts'
import type { WriteError } from '../capabilities/errors.ts'
import { Tally } from '../telemetry/tally.ts'
import { makeCors } from './cors.ts'
import { makeEdge } from './edge.ts'
import type { Route } from './route.ts'

const speaking =
  (voice: string): WriteError =>
  (error) => ({ status: error.kind === 'not-found' ? 404 : 400, headers: {}, body: voice })
const route = { method: 'POST', auth: 'key', serve: () => new Response('served') } as const
const routes: readonly Route[] = [
  { ...route, path: '/v1/messages', writeError: speaking('messages'), speaksBelow: true },
  { ...route, path: '/v1/other', writeError: speaking('other') },
  { ...route, path: '/open', writeError: speaking('open'), auth: 'open' },
  { ...route, path: '/v1/broken', writeError: speaking('broken'), serve: () => Promise.reject(new Error('broken')) },
]
const edge = makeEdge({
  routes,
  writeError: speaking('usual'),
  isProxy: () => false,
  cors: makeCors(['*']),
  log: silentLog,
  tally: new Tally(),
})
let handedOver = 0
const ask = (path: string, method = 'POST', headers: Record<string, string> = {}) =>
  edge(new Request(`http://gateway.test${path}`, { method, headers: { host: 'gateway.test', ...headers } }), {
    address: () => '127.0.0.1',
    headerCount: () => 0,
    handOver: () => void handedOver++,
  } as unknown as Parameters<typeof edge>[1])

test.each([
  ['/v1/messages', 'served'],
  ['/v1/messages/batches', 'messages'],
  ['/v1/messages/batches/b_1/results', 'messages'],
  ['/v1/messages/', 'messages'],
  ['/v1/messagesabc', 'usual'],
  ['/v1/other/x', 'usual'],
  ['/x/v1/messages/x', 'usual'],
])('an unknown path is refused as its own clients read it: %s', async (path, voice) => {
  expect(await (await ask(path)).text()).toBe(voice)
})

test('an open path need not know that its answer has an id, nor does a preflight', async () => {
  const preflight = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
  const answers = [
    await ask('/open'),
    await ask('/v1/other', 'OPTIONS', preflight),
    await ask('/open', 'OPTIONS', preflight),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 204, 204])
  for (const { headers } of answers) expect(headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
})

test('whatever the answer is, its connection hears that it is handed over', async () => {
  for (const path of ['/v1/messages', '/open', '/nowhere', '/v1/broken']) {
    handedOver = 0
    await ask(path)
    expect(handedOver).toBe(1)
  }
})
