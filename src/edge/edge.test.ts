import { expect, test } from 'bun:test'
import { silentLog } from '../base/log.ts'
import type { WriteError } from '../capabilities/errors.ts'
import { makeEdge } from './edge.ts'
import type { Route } from './route.ts'

const speaking =
  (voice: string): WriteError =>
  (error) => ({ status: error.kind === 'not-found' ? 404 : 400, headers: {}, body: voice })
const route = { method: 'POST', auth: 'key', serve: () => new Response('served') } as const
const routes: readonly Route[] = [
  { ...route, path: '/v1/messages', writeError: speaking('messages'), speaksBelow: true },
  { ...route, path: '/v1/other', writeError: speaking('other') },
]
const edge = makeEdge({
  routes,
  writeError: speaking('usual'),
  trustedProxies: new Set(),
  cors: undefined,
  log: silentLog,
})

test.each([
  ['/v1/messages', 'served'],
  ['/v1/messages/batches', 'messages'],
  ['/v1/messages/batches/b_1/results', 'messages'],
  ['/v1/messages/', 'messages'],
  ['/v1/messagesabc', 'usual'],
  ['/v1/other/x', 'usual'],
  ['/x/v1/messages/x', 'usual'],
])('an unknown path is refused as its own clients read it: %s', async (path, voice) => {
  const request = new Request(`http://gateway.test${path}`, { method: 'POST', headers: { host: 'gateway.test' } })
  const answer = await edge(request, { address: '127.0.0.1' } as unknown as Parameters<typeof edge>[1])
  expect(await answer.text()).toBe(voice)
})
