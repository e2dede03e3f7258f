import { afterEach, describe, expect, test } from 'bun:test'
import { handTimers } from '../../test/support/hand-timers.ts'
import { startVendor, type RawVendor } from '../../test/support/vendor.ts'
import { systemClock } from '../base/clock.ts'
import { vendors } from '../vendors/index.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { discoverLocalServers, ourModelId } from './discover.ts'
import { makeTransport } from './transport.ts'

describe('a local server', () => {
  const servers: RawVendor[] = []
  const proxyVariables = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy']
  const before = proxyVariables.map((name) => [name, process.env[name]] as const)
  afterEach(async () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
    for (const server of servers.splice(0)) await server.stop()
  })

  /** A server that lists these models, or answers with another status. */
  async function serving(models: readonly string[], status = '200 OK') {
    const body = JSON.stringify({ object: 'list', data: models.map((id) => ({ id })) })
    const server = await startVendor((socket) => {
      socket.end(
        `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      )
    })
    servers.push(server)
    return server
  }

  const ollama = vendors.get('ollama') as Vendor
  // Time stands still, because a busy machine may take longer than the gateway waits for a server.
  const discover = (server: RawVendor, ownPort = 1) =>
    discoverLocalServers(makeTransport(systemClock, handTimers()), ownPort, [{ ...ollama, baseUrl: server.baseUrl }])

  test('a local server is found with the models that it lists', async () => {
    const server = await serving(['llama3.1:8b', 'other'])
    const [found, ...others] = await discover(server)
    expect(found).toMatchObject({ channel: { baseUrl: server.baseUrl }, upstreamModels: ['llama3.1:8b', 'other'] })
    expect(others).toEqual([])
    expect(server.requests[0]?.head).toStartWith('GET /v1/models HTTP/1.1\r\n')
  })

  test('a server that refuses, lists nothing or is this gateway is left out', async () => {
    expect(await discover(await serving(['m'], '401 Unauthorized'))).toEqual([])
    expect(await discover(await serving([]))).toEqual([])
    const ourselves = await serving(['m'])
    expect(await discover(ourselves, Number(new URL(ourselves.baseUrl).port))).toEqual([])
    expect(ourselves.requests).toEqual([])
  })

  test('a local server is asked directly, not through the proxy of the environment', async () => {
    const [server, proxy] = [await serving(['own']), await serving(['stranger'])]
    for (const name of proxyVariables) process.env[name] = new URL(proxy.baseUrl).origin
    expect(await discover(server)).toMatchObject([{ upstreamModels: ['own'] }])
    expect(proxy.requests).toEqual([])
  })
})

test.each([
  ['llama3.1:8b', 'llama3.1-8b'],
  ['org/Model_Name', 'org-model-name'],
  ['My Model.gguf', 'my-model.gguf'],
  ['C:\\models\\a+b@q4', 'c-models-a-b-q4'],
  ['/models/x.gguf', 'models-x.gguf'],
  ['', undefined],
  ['///', undefined],
  ['模型', undefined],
  ['x'.repeat(500), undefined],
])('the upstream model %j of a local server gets the id %j', (upstreamModel, id) => {
  expect(ourModelId(upstreamModel)).toBe(id)
})
