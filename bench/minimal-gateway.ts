import { reportTo } from './control.ts'
import { benchKey, benchModel, vendorKey } from './fixtures.ts'

/**
 * The least that could be called a gateway, in one function: it checks a key, parses the body and writes it again with
 * the model replaced, and looks for usage in the answer, event by event where it streams. No validation, no money, no
 * timeouts, no hang-ups. What Turnpike costs beyond this is the price of its guarantees; what this costs beyond the
 * bare proxy is what any gateway written in JavaScript pays.
 */
const [upstream = ''] = process.argv.slice(2)
const keys = new Set([benchKey])
const usageKey = Buffer.from('"usage":{')
const decoder = new TextDecoder()
let tokens = 0

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 65,
  async fetch(request) {
    if (request.method === 'GET') return new Response('ok')
    const key = request.headers.get('authorization')?.slice('Bearer '.length)
    if (key === undefined || !keys.has(key)) return new Response(null, { status: 401 })
    const body = JSON.parse(await request.text()) as { model: string; stream?: boolean }
    body.model = benchModel
    const answer = await fetch(`${upstream}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${vendorKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: request.signal,
    })
    const type = answer.headers.get('content-type') ?? 'application/octet-stream'
    if (body.stream === true && answer.body !== null) {
      return new Response(watched(answer.body), { headers: { 'content-type': type } })
    }
    const bytes = await answer.bytes()
    count(bytes)
    return new Response(bytes, { status: answer.status, headers: { 'content-type': type } })
  },
})

function count(bytes: Uint8Array): void {
  const { usage } = JSON.parse(decoder.decode(bytes)) as { usage?: { total_tokens: number } }
  tokens += usage?.total_tokens ?? 0
}

function watched(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) return controller.close()
        if (Buffer.from(value.buffer, value.byteOffset, value.byteLength).includes(usageKey)) tokens++
        return controller.enqueue(value)
      },
      cancel: () => reader.cancel(),
    },
    { highWaterMark: 0 },
  )
}

reportTo(process, server.port ?? 0)
