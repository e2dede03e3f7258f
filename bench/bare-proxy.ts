import { reportTo } from './control.ts'
import { vendorKey } from './fixtures.ts'

/**
 * The baseline for everything Turnpike adds: a proxy on the same runtime that reads the JSON body, replaces the
 * client's key with its own, and passes the answer's body through. It checks, counts and promises nothing.
 */
const [upstream = ''] = process.argv.slice(2)

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 65,
  async fetch(request) {
    if (request.method === 'GET') return new Response('ok')
    const body: unknown = await request.json()
    const answer = await fetch(`${upstream}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${vendorKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return new Response(answer.body, {
      status: answer.status,
      headers: { 'content-type': answer.headers.get('content-type') ?? 'application/octet-stream' },
    })
  },
})

reportTo(process, server.port ?? 0)
