import { expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { makeGuardedFetch } from './guarded-fetch.ts'

test('the limit on connecting ends with the connection: a server may take longer to answer', async () => {
  const connectMs = 1_000
  const server = createServer((_request, response) => {
    setTimeout(() => response.end('late'), connectMs + 200)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = server.address() as AddressInfo
    const guard = makeGuardedFetch({ schemes: 'https-and-http', ports: 'any', addresses: 'loopback' })
    const { body } = await guard.get(`http://127.0.0.1:${port}/`, { bytesMax: 1_024, connectMs })
    expect(Buffer.from(body).toString()).toBe('late')
  } finally {
    server.close()
  }
})
