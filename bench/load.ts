import type { Socket } from 'bun'

/**
 * The load generator: bare sockets, kept alive, and just enough HTTP to know where an answer ends. It shares its core
 * with the upstream, so the less it uses, the steadier the figures are.
 */
export type Target = { readonly port: number; readonly request: Buffer }

type PostOptions = { readonly path?: string; readonly headers?: Readonly<Record<string, string>> }

export function post(port: number, key: string, body: string, options: PostOptions = {}): Target {
  const { path = '/v1/chat/completions', headers = {} } = options
  return targetOf({ port, key, path, type: 'application/json', headers, body: Buffer.from(body) })
}

/** A form with a file in it. The form is made by the caller, once, so that every target gets the same content. */
export async function postForm(port: number, key: string, form: FormData, path: string): Promise<Target> {
  const made = new Response(form)
  const type = made.headers.get('content-type') ?? ''
  return targetOf({ port, key, path, type, headers: {}, body: Buffer.from(await made.arrayBuffer()) })
}

type Post = Required<PostOptions> & { port: number; key: string; type: string; body: Buffer }

function targetOf({ port, key, path, type, headers, body }: Post): Target {
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    `authorization: Bearer ${key}`,
    `content-type: ${type}`,
    'user-agent: turnpike-bench',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${body.length}`,
  ]
  return { port, request: Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]) }
}

/** One answer, as far as the bench looks at it. */
export type Seen = { readonly status: number; readonly events: number; readonly reads: number }

const headEnd = Buffer.from('\r\n\r\n')
const eventEnd = Buffer.from('\n\n')
const chunkedEnd = Buffer.from('0\r\n\r\n')

class Connection {
  readonly #target: Target
  #socket: Socket | undefined
  #done: ((seen: Seen) => void) | undefined
  #fail: ((reason: Error) => void) | undefined
  #status = 0
  #events = 0
  #reads = 0
  /** Bytes of the body still to come; infinite for a chunked body, whose end is marked instead. */
  #left = 0
  /** The head while it is incomplete; later the last few bytes, in which the end of the body may begin. */
  #tail: Buffer = Buffer.alloc(0)
  #unsent: Buffer = Buffer.alloc(0)

  constructor(target: Target) {
    this.#target = target
  }

  static async open(target: Target): Promise<Connection> {
    const connection = new Connection(target)
    connection.#socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: target.port,
      socket: {
        data: (_socket, bytes) => connection.#take(bytes),
        drain: () => connection.#send(),
        close: () => connection.#fail?.(new Error('the connection was closed')),
        error: (_socket, error) => connection.#fail?.(error),
      },
    })
    connection.#socket.setNoDelay(true)
    return connection
  }

  ask(): Promise<Seen> {
    return new Promise((resolve, reject) => {
      this.#done = resolve
      this.#fail = reject
      this.#status = 0
      this.#events = 0
      this.#reads = 0
      this.#tail = Buffer.alloc(0)
      this.#unsent = this.#target.request
      this.#send()
    })
  }

  /** A large request does not fit into the socket at once. */
  #send(): void {
    if (this.#unsent.length > 0) this.#unsent = this.#unsent.subarray(this.#socket?.write(this.#unsent) ?? 0)
  }

  close(): void {
    this.#fail = undefined
    this.#socket?.end()
  }

  #take(bytes: Buffer): void {
    let body = bytes
    if (this.#status === 0) {
      // Bun's server writes the head of a stream in two pieces.
      const all = this.#tail.length === 0 ? bytes : Buffer.concat([this.#tail, bytes])
      const end = all.indexOf(headEnd)
      if (end === -1) {
        this.#tail = all
        return
      }
      const head = all.toString('latin1', 0, end)
      this.#status = Number(head.slice(9, 12))
      this.#left = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? Number.POSITIVE_INFINITY)
      this.#tail = Buffer.alloc(0)
      body = all.subarray(end + headEnd.length)
    }
    if (body.length > 0) this.#reads++
    for (let at = body.indexOf(eventEnd); at !== -1; at = body.indexOf(eventEnd, at + 2)) this.#events++
    this.#left -= body.length
    if (this.#left <= 0 || (this.#left === Number.POSITIVE_INFINITY && this.#endsChunks(body))) {
      this.#done?.({ status: this.#status, events: this.#events, reads: this.#reads })
    }
  }

  #endsChunks(body: Buffer): boolean {
    const short = body.length < chunkedEnd.length
    const tail = short ? Buffer.concat([this.#tail, body]) : body
    const end = tail.subarray(-chunkedEnd.length)
    if (end.equals(chunkedEnd)) return true
    this.#tail = Buffer.from(end)
    return false
  }
}

async function openAll(target: Target, connections: number): Promise<Connection[]> {
  return Promise.all(Array.from({ length: connections }, () => Connection.open(target)))
}

/** Each connection asks again as soon as it is answered, for a time or up to a number. Gives the number of answers. */
export async function closedLoop(
  target: Target,
  options: { connections: number; ms: number; answersMax?: number },
): Promise<number> {
  const open = await openAll(target, options.connections)
  const endsAt = performance.now() + options.ms
  const { answersMax = Number.POSITIVE_INFINITY } = options
  let answers = 0
  await Promise.all(
    open.map(async (connection) => {
      while (performance.now() < endsAt && answers < answersMax) {
        expectStatus(await connection.ask())
        answers++
      }
      connection.close()
    }),
  )
  return answers
}

function isExpected(events: number, expected: number | { atLeast: number }): boolean {
  return typeof expected === 'number' ? events === expected : events >= expected.atLeast
}

export type StreamsRead = { readonly streams: number; readonly events: number; readonly reads: number }

/** Each connection reads `each` streams in sequence; connections start at different times, as separate clients do. */
export async function readStreams(
  target: Target,
  options: { connections: number; each: number; events: number | { atLeast: number }; spreadMs: number },
): Promise<StreamsRead> {
  const open = await openAll(target, options.connections)
  let events = 0
  let reads = 0
  await Promise.all(
    open.map(async (connection, index) => {
      await Bun.sleep((index * options.spreadMs) / options.connections)
      for (let i = 0; i < options.each; i++) {
        const seen = await connection.ask()
        expectStatus(seen)
        if (!isExpected(seen.events, options.events)) throw new Error(`a stream of ${seen.events} events`)
        events += seen.events
        reads += seen.reads
      }
      connection.close()
    }),
  )
  return { streams: options.connections * options.each, events, reads }
}

/**
 * Requests leave at fixed moments whether or not earlier ones were answered, and each is timed from the moment it was
 * due: a stall of the system under test counts for every request that it delayed. Gives microseconds.
 */
export async function openLoop(target: Target, options: { everyMs: number; ms: number }): Promise<number[]> {
  const idle = await openAll(target, connectionsMax)
  const waiting: ((freed: Connection) => void)[] = []
  const latencies: number[] = []
  const pending: Promise<void>[] = []
  const startsAt = performance.now() + 5

  const send = async (dueAt: number) => {
    const connection = idle.pop() ?? (await new Promise<Connection>((resolve) => waiting.push(resolve)))
    expectStatus(await connection.ask())
    latencies.push((performance.now() - dueAt) * 1000)
    const next = waiting.shift()
    if (next === undefined) idle.push(connection)
    else next(connection)
  }

  for (let due = startsAt; due < startsAt + options.ms; due += options.everyMs) {
    await reach(due)
    pending.push(send(due))
  }
  await Promise.all(pending)
  for (const connection of idle) connection.close()
  return latencies
}

const connectionsMax = 64

/** Timers are accurate to a millisecond, so the last one is spent turning the event loop, which still reads answers. */
async function reach(due: number): Promise<void> {
  const wait = Math.floor(due - performance.now()) - 1
  if (wait > 0) await Bun.sleep(wait)
  while (performance.now() < due) await new Promise<void>((resolve) => setImmediate(resolve))
}

function expectStatus({ status }: Seen): void {
  if (status !== 200) throw new Error(`answered ${status}`)
}
