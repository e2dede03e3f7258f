import { expect, test } from 'bun:test'
import { createServer } from 'node:http'
import { createServer as createSilentServer, type AddressInfo } from 'node:net'
import { makeGuardedFetch } from './guarded-fetch.ts'

test('the limit on connecting includes the TLS handshake', async () => {
  const silent = createSilentServer()
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = silent.address() as AddressInfo
    const guard = makeGuardedFetch({ ports: 'any', addresses: 'loopback' })
    const limits = { bytesMax: 1_024, connectMs: 50, totalMs: 5_000 }
    const thrown: unknown = await guard.get(`https://127.0.0.1:${port}/`, limits).catch((error: unknown) => error)
    expect(thrown).toMatchObject({ reason: 'unreachable' })
  } finally {
    silent.close()
  }
})

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
