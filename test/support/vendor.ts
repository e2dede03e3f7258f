import { createServer, type Socket } from 'node:net'
import { freePort } from './free-port.ts'

/** One request as a raw vendor received it. */
export type VendorRequest = { readonly head: string; readonly body: Record<string, unknown>; readonly call: number }

/** A vendor that answers with any bytes a test wants, over sockets that a test can cut. */
export type RawVendor = {
  /** Up to and including `/v1`. */
  readonly baseUrl: string
  /** The same without `/v1`, for vendors whose base address has none. */
  readonly origin: string
  readonly requests: VendorRequest[]
  /** How many of its connections the gateway closed or cut while they were being answered. */
  readonly hangups: number
  stop(): Promise<void>
}

export type Reply = (socket: Socket, request: VendorRequest) => void | Promise<void>

export async function startVendor(reply: Reply): Promise<RawVendor> {
  const requests: VendorRequest[] = []
  const sockets = new Set<Socket>()
  let hangups = 0
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    let answering = 0
    let received = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      if (answering > 0 && !socket.writableEnded) hangups++
    })
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes])
      for (let read = readRequest(received); read !== undefined; read = readRequest(received)) {
        received = received.subarray(read.bytes)
        const request = { head: read.head, body: read.body, call: requests.length + 1 }
        requests.push(request)
        answering++
        void Promise.resolve(reply(socket, request)).then(() => answering--)
      }
    })
  })
  // Once this vendor is stopped, no other server may answer at its address.
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    origin: `http://127.0.0.1:${port}`,
    requests,
    get hangups() {
      return hangups
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function readRequest(bytes: Buffer): { head: string; body: Record<string, unknown>; bytes: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = bytes.toString('latin1', 0, headEnd)
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
  const end = headEnd + 4 + length
  if (bytes.length < end) return undefined
  const text = bytes.toString('utf8', headEnd + 4, end)
  return { head, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>, bytes: end }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Writes the same bytes for ever, or up to `bytesMax`, as fast as they are read. Returns how many were written. */
export async function flood(socket: Socket, bytes: Uint8Array, bytesMax = Infinity): Promise<number> {
  let sent = 0
  let wake: (() => void) | undefined
  socket.on('drain', () => wake?.()).on('close', () => wake?.())
  while (!socket.destroyed && sent < bytesMax) {
    sent += bytes.length
    // A write that finds room lets the event loop turn too: only there does this side learn that the other hung up.
    if (socket.write(bytes)) await turn()
    else if (!socket.destroyed) await new Promise<void>((resolve) => (wake = resolve))
  }
  return sent
}

/** A complete stream of events with a proper end. */
export function stream(events: string): Buffer {
  return Buffer.concat([Buffer.from(streamHead), chunk(events), Buffer.from(lastChunk)])
}

/** A complete answer with its length. */
export function answer(status: number, body: string, headers: Readonly<Record<string, string>> = {}): string {
  const given = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)), ...headers }
  const written = Object.entries(given).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} Whatever\r\n${written.join('')}\r\n${body}`
}

/** The head of an event stream. What follows it is written with `chunk`. */
export const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n'

export function chunk(bytes: string | Uint8Array): Buffer {
  const body = Buffer.from(bytes)
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')])
}

export const lastChunk = '0\r\n\r\n'

export function event(json: unknown): string {
  return `data: ${typeof json === 'string' ? json : JSON.stringify(json)}\n\n`
}

const shared = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' }

export function delta(content: string): string {
  return event({ ...shared, choices: [{ index: 0, delta: { content }, finish_reason: null }] })
}

export const opening = event({
  ...shared,
  choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
})

export const finish = event({ ...shared, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })

export function usageEvent(prompt: number, completion: number): string {
  return event({ ...shared, choices: [], usage: usage(prompt, completion) })
}

export const done = 'data: [DONE]\n\n'

function usage(prompt: number, completion: number) {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
}

/** A plain completion; `more` overrides its fields. */
export function completion(content: string, more: Record<string, unknown> = {}): string {
  return JSON.stringify({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' },
    ],
    usage: usage(10, 5),
    ...more,
  })
}

/**
 * Settings in real mode with one channel for each vendor and one model `m` on all of them; more settings may follow.
 */
export function channelsTo(
  vendors: Readonly<Record<string, Pick<RawVendor, 'baseUrl'> & { key?: string }>>,
  more = '',
  outputTokensMax = 1_000,
): string {
  const ids = Object.keys(vendors)
  const channels = Object.entries(vendors).map(
    ([id, { baseUrl, key = 'vendor-key' }], priority) =>
      `  - { id: ${id}, vendor: compatible, baseUrl: "${baseUrl}", keys: ["${key}"], priority: ${priority} }`,
  )
  return [
    'sandbox: false',
    'channels:',
    ...channels,
    'models:',
    '  - id: m',
    '    capability: chat',
    `    channels: [${ids.map((id) => `{ channel: ${id} }`).join(', ')}]`,
    `    outputTokensMax: ${outputTokensMax}`,
    '    prices: { inputPerMillion: "1", outputPerMillion: "10" }',
    more,
  ].join('\n')
}

/** The beginning of a stream, then words up to that many bytes, as fast as they are read. */
export async function floodWithWords(socket: Socket, bytes: number): Promise<void> {
  socket.write(streamHead)
  socket.write(chunk(opening))
  await flood(socket, chunk(delta('x'.repeat(1_000)).repeat(64)), bytes)
}

/** An answer in OpenAI's responses protocol, for a hundred tokens of input and ten of output. */
export const wholeResponse = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  error: null,
  model: 'theirs',
  output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] }],
  usage: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
}
