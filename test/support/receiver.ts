import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Received = {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** From `performance.now()`. */
  readonly at: number
}

/** A status, a status with a body, silence for as long as the connection lasts, or a broken connection. */
export type Reply =
  | number
  | { readonly status: number; readonly body?: string; readonly location?: string }
  | 'silence'
  | 'hang-up'

export type Receiver = {
  readonly port: number
  /** The receiver's URL under any host name: tests resolve all of them to this machine. */
  url(host?: string, path?: string): string
  readonly received: Received[]
  /** The number of connections so far, and the most at one time. */
  connections(): number
  atOnceMax(): number
  reply(how: Reply | ((received: Received) => Reply)): void
  /** Answers every request that is kept waiting in silence. */
  release(status?: number): void
  close(): void
}

/** A receiver of webhooks. */
export async function startReceiver(first: Reply = 204): Promise<Receiver> {
  const received: Received[] = []
  const waiting = new Set<ServerResponse>()
  let how: Reply | ((received: Received) => Reply) = first
  let connections = 0
  let atOnce = 0
  let atOnceMax = 0
  const server = createServer((request, response) => {
    const chunks: Uint8Array[] = []
    request.on('data', (chunk: Uint8Array) => chunks.push(chunk))
    request.on('end', () => {
      const { url: path = '', headers } = request
      const one = { path, headers, body: Buffer.concat(chunks).toString(), at: performance.now() }
      received.push(one)
      const reply = typeof how === 'function' ? how(one) : how
      if (reply === 'silence') return waiting.add(response)
      if (reply === 'hang-up') return request.socket.destroy()
      const { status, body, location } =
        typeof reply === 'number' ? { status: reply } : { location: undefined, ...reply }
      return response.writeHead(status, location === undefined ? {} : { location }).end(body)
    })
  })
  server.on('connection', (socket) => {
    connections++
    atOnceMax = Math.max(atOnceMax, ++atOnce)
    socket.on('error', () => {})
    socket.on('close', () => atOnce--)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: (host = '127.0.0.1', path = '/hook') => `http://${host}:${port}${path}`,
    received,
    connections: () => connections,
    atOnceMax: () => atOnceMax,
    reply(next) {
      how = next
    },
    release(status = 204) {
      for (const response of waiting) response.writeHead(status).end()
      waiting.clear()
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
