import { afterEach, beforeEach, expect, test } from 'bun:test'
import { silentLog } from '../base/log.ts'
import { openPort, type Port } from './starting.ts'

let port: Port
beforeEach(() => {
  port = openPort({ hostname: '127.0.0.1', port: 0, setting: 'PORT' }, silentLog)
})
afterEach(() => port.listener.stop('at-once'))

const ask = (path: string, options: RequestInit = {}) => fetch(port.listener.url + path, options)
const post = { method: 'POST', body: '{}' }
const message = 'The gateway is starting: its database does not answer yet.'
const common = { error: { message, type: 'overloaded_error', param: null, code: 'overloaded' } }
const messages = {
  type: 'error',
  error: { type: 'overloaded_error', message },
  request_id: expect.stringMatching(/^req_/),
}
const asMessages = { headers: { 'anthropic-version': '2023-06-01' } }

test('a node that is starting is alive', async () => {
  expect((await ask('/healthz')).status).toBe(200)
  expect((await ask('/v1/healthz')).status).toBe(503)
  expect((await ask('/v1/chat/completions?x=/healthz', post)).status).toBe(503)
})

test.each([
  ['/v1/chat/completions', post, common],
  ['/v1/messages', post, messages],
  ['/v1/messages?beta=true', post, messages],
  ['/v1/messages/count_tokens', post, messages],
  ['/v1/models', {}, common],
  ['/v1/models', asMessages, messages],
  ['/v1/models/claude-opus-5', asMessages, messages],
  [
    '/v1/images/generations',
    post,
    { code: 'ServiceUnavailable', message, request_id: expect.stringMatching(/^req_/), ...common },
  ],
  ['/v1/audio/speech', post, common],
  ['/readyz', {}, common],
  ['/nowhere', {}, common],
])('while it starts, %s refuses in the protocol of its clients', async (path, options, body) => {
  const response = await ask(path, options)
  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('1')
  expect(response.headers.get('x-request-id')).toMatch(/^req_/)
  expect(await response.json()).toEqual(body)
})

test('a Host that is none is refused as it will be after the start', async () => {
  const response = await ask('/healthz', { headers: { host: 'a b' } })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { code: 'invalid_host' } })
})
