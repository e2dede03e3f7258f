import { expect, test } from 'bun:test'
import type { Socket } from 'bun'
import fc from 'fast-check'
import { systemClock } from '../clock.ts'
import { Deadlines } from '../deadlines.ts'
import { Gathering } from '../gathering.ts'
import { IntrusiveSet } from '../intrusive-set.ts'
import { ClientConnection } from './client-connection.ts'
import type { PushedBody, Sink } from './pushed-body.ts'
import { Reply, type HttpResponse } from './reply.ts'
import type { HttpRequest } from './request.ts'
import type { Serving } from './serving.ts'

/** A socket that takes as many bytes as it has room for, and calls back at once, as the runtime's may. */
class FakeSocket {
  readonly remoteAddress = '127.0.0.1'
  connection: ClientConnection | undefined
  room = 1_000_000
  sent = ''
  isClosed = false
  isPaused = false
  isShut = false
  /** The next write finds that the client has left. */
  breaks = false

  write(bytes: Uint8Array): number {
    if (this.isShut) throw new Error('written after the end')
    if (this.breaks) this.close()
    if (this.isClosed) return -1
    const taken = Math.min(this.room, bytes.length)
    this.room -= taken
    this.sent += Buffer.from(bytes.subarray(0, taken)).toString('latin1')
    return taken
  }

  pause() {
    this.isPaused = true
  }

  resume() {
    this.isPaused = false
    this.connection?.drained()
  }

  shutdown() {
    this.isShut = true
  }

  end() {
    this.close()
  }

  terminate() {
    this.close()
  }

  close() {
    if (this.isClosed) return
    this.isClosed = true
    this.connection?.closed()
  }
}

/** One request as the code behind the server has it. */
type Asked = { readonly request: HttpRequest; readonly answer: (how: Answer) => void; aborts: number }
type Stream = PushedBody & { sink?: Sink; isOver: boolean; lefts: number; id: string }

const answers = [
  'whole',
  'large',
  'stream',
  'streamAtOnce',
  'failsToBegin',
  'web',
  'document',
  'reject',
  'unspeakable',
] as const
type Answer = (typeof answers)[number]

class World {
  readonly socket = new FakeSocket()
  readonly asked: Asked[] = []
  readonly streams: Stream[] = []
  readonly serving: Serving
  readonly connection: ClientConnection
  #answered = 0

  constructor() {
    this.serving = {
      answer: (request) => this.#ask(request),
      arrivals: new Gathering(),
      connections: new IntrusiveSet(),
      watching: { deadlines: new Deadlines(systemClock), clock: systemClock, idleSeconds: 65 },
      sockets: { unreadBytes: () => Promise.resolve(undefined) },
      underway: 0,
      isStopping: false,
      mistaken() {},
      closed() {},
    }
    this.connection = new ClientConnection(this.serving, this.socket as unknown as Socket<ClientConnection>)
    this.socket.connection = this.connection
  }

  #ask(request: HttpRequest): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const id = new URL(request.url).pathname.slice(1)
      const answer = (how: Answer) => (how === 'reject' ? reject(new Error('no')) : resolve(this.#made(how, id)))
      const asked: Asked = { request, answer, aborts: 0 }
      request.signal.addEventListener('abort', () => asked.aborts++)
      if (id.endsWith('r')) request.bytes().catch(() => {})
      this.asked.push(asked)
    })
  }

  #made(how: Exclude<Answer, 'reject'>, id: string): HttpResponse {
    const bytes = Buffer.from(`<${id}>`)
    if (how === 'whole') return new Reply(200, {}, bytes)
    if (how === 'large') return new Reply(200, {}, Buffer.from(`<${id}>${'x'.repeat(70_000)}`))
    if (how === 'unspeakable') return new Reply(200, { 'x-a': '\n' }, bytes)
    if (how === 'web') return new Response(`<${id}>`)
    if (how === 'document') return Response.json(`<${id}>`)
    return new Reply(200, {}, this.#stream(how, bytes, id))
  }

  #stream(how: Answer, bytes: Uint8Array, id: string): Stream {
    const stream: Stream = {
      id,
      isOver: false,
      lefts: 0,
      begin(sink) {
        stream.sink = sink
        sink.write(bytes)
        if (how === 'failsToBegin') throw new Error('no')
        if (how !== 'streamAtOnce') return
        stream.isOver = true
        sink.end()
      },
      drained() {},
      left: () => stream.lefts++,
    }
    this.streams.push(stream)
    return stream
  }

  answerNext(how: Answer): void {
    const next = this.asked[this.#answered]
    if (next === undefined) return
    this.#answered++
    next.answer(how)
  }

  onStream(what: 'write' | 'end' | 'cut'): void {
    const stream = this.streams.find(({ isOver, lefts, sink }) => !isOver && lefts === 0 && sink !== undefined)
    if (stream?.sink === undefined) return
    if (what !== 'write') stream.isOver = true
    if (what === 'write') stream.sink.write(Buffer.from('more'))
    else stream.sink[what]()
  }

  /** Does the rest of everything, until nothing keeps the connection. */
  async finish(): Promise<void> {
    for (let i = 0; i < 40 && !this.socket.isClosed; i++) {
      this.answerNext('whole')
      this.onStream('end')
      this.socket.room = Number.MAX_SAFE_INTEGER
      this.connection.drained()
      await turn()
    }
    // A client that was told that no more comes has a moment to close, and an idle one its time.
    const secondsMax = this.serving.isStopping ? 4 : 67
    for (let seconds = 0; seconds < secondsMax && !this.socket.isClosed; seconds++) this.connection.tick()
    for (let i = 0; i < 20; i++) this.answerNext('stream')
    await turn()
  }
}

const turn = () => Bun.sleep(0).then(() => new Promise<void>((resolve) => setImmediate(resolve)))

const broken: ((id: number) => string)[] = [
  () => 'POST /bad HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
  () => 'nonsense\r\n\r\n',
]
const requests = [
  (id: number) => `GET /${id} HTTP/1.1\r\nhost: a\r\n\r\n`,
  (id: number) => `POST /${id} HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc`,
  (id: number) => `POST /${id}r HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\nabc`,
  (id: number) => `POST /${id}r HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
  (id: number) => `POST /${id} HTTP/1.1\r\nhost: a\r\ncontent-length: 150000\r\n\r\n${'x'.repeat(150_000)}`,
  (id: number) => `GET /${id} HTTP/1.0\r\nhost: a\r\n\r\n`,
  (id: number) => `HEAD /${id} HTTP/1.1\r\nhost: a\r\n\r\n`,
  ...broken,
]

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('send' as const), bytes: fc.constantFrom(1, 60, 200, 400_000) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('answer' as const), how: fc.constantFrom(...answers) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('stream' as const), what: fc.constantFrom('write', 'end', 'cut') }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('drain' as const), room: fc.constantFrom(0, 10, 1_000, 1_000_000) }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: 'turn' as const }) },
  { weight: 1, arbitrary: fc.constantFrom({ kind: 'tick' as const }, { kind: 'stop' as const }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom({ kind: 'terminate' as const }, { kind: 'close' as const }, { kind: 'break' as const }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

async function run(world: World, sending: string, steps: readonly Step[]): Promise<void> {
  const { connection, socket } = world
  let at = 0
  for (const one of steps) {
    if (socket.isClosed) return
    if (world.serving.underway === 0) expect(socket.isPaused).toBe(false)
    if (one.kind === 'send' && !socket.isPaused) {
      connection.received(Buffer.from(sending.slice(at, at + one.bytes), 'latin1'))
      at += one.bytes
    } else if (one.kind === 'answer') world.answerNext(one.how)
    else if (one.kind === 'stream') world.onStream(one.what)
    else if (one.kind === 'drain') {
      socket.room = one.room
      connection.drained()
    } else if (one.kind === 'tick') connection.tick()
    else if (one.kind === 'stop') {
      world.serving.isStopping = true
      connection.stop()
    } else if (one.kind === 'terminate') connection.terminate()
    else if (one.kind === 'close') socket.close()
    else if (one.kind === 'break') socket.breaks = true
    else await turn()
  }
}

test('whatever happens in whatever order, answers keep their order and nothing is left behind', async () => {
  const sent = fc.array(fc.constantFrom(...requests), { minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(sent, fc.array(step, { minLength: 5, maxLength: 40 }), async (made, steps) => {
      const world = new World()
      await run(world, made.map((request, id) => request(id)).join(''), steps)
      await world.finish()
      const { socket, serving, asked, streams } = world
      expect({ isClosed: socket.isClosed, underway: serving.underway, left: serving.connections.size }).toEqual({
        isClosed: true,
        underway: 0,
        left: 0,
      })
      // Answers are those of the requests, each once and in their order.
      const told = [...socket.sent.matchAll(/<(\d+)r?>/g)].map(([, id]) => Number(id))
      expect(told).toEqual([...new Set(told)].toSorted((a, b) => a - b))
      const finals = [...socket.sent.matchAll(/HTTP\/1\.1 (\d{3})/g)].filter(([, status]) => status !== '100')
      expect(finals.length).toBeLessThanOrEqual(asked.length + (made.some((one) => broken.includes(one)) ? 1 : 0))
      for (const { aborts } of asked) expect(aborts).toBeLessThan(2)
      // Whoever writes a stream has ended it, or knows that nobody reads it.
      for (const { isOver, lefts } of streams) expect(isOver || lefts > 0).toBe(true)
    }),
    { numRuns: 2_000 },
  )
}, 30_000)

test('a head that drips in has twelve seconds, and a body that does has longer', () => {
  const second = ({ connection }: World, sent: string) => {
    connection.received(Buffer.from(sent))
    connection.tick()
  }
  const world = new World()
  for (let seconds = 1; seconds <= 12; seconds++) second(world, 'x')
  expect(world.socket.isClosed).toBe(false)
  second(world, 'x')
  expect(world.socket.isClosed).toBe(true)
  const other = new World()
  for (let seconds = 1; seconds <= 12; seconds++) second(other, 'x')
  second(other, ' / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n')
  for (let seconds = 1; seconds <= 20; seconds++) second(other, 'x')
  expect(other.socket.isClosed).toBe(false)
})

/** A stream that has begun, to a client with room for so many bytes. */
async function streaming(room: number, head = 'GET /1 HTTP/1.1\r\nhost: a\r\n\r\n') {
  const world = new World()
  world.socket.room = room
  world.connection.received(Buffer.from(head))
  await new Promise(setImmediate)
  world.asked[0]?.answer('stream')
  await new Promise(setImmediate)
  const { socket, connection, streams } = world
  return { socket, connection, streams, sink: streams[0]?.sink }
}

test('a stream that breaks off is cut off at once where its client is behind, and otherwise when it has read', async () => {
  const behind = await streaming(3)
  behind.sink?.cut()
  expect(behind.socket).toMatchObject({ isClosed: true, isShut: false })
  const reading = await streaming(1_000)
  reading.sink?.cut()
  expect(reading.socket).toMatchObject({ isClosed: false, isShut: true })
  expect(reading.socket.sent).toEndWith('<1>\r\n')
})

test('a body that is not HTTP breaks off the stream that answers it, and nothing is written into that', async () => {
  const { socket, connection, streams } = await streaming(
    1_000,
    'POST /1 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n',
  )
  const { sent } = socket
  connection.received(Buffer.from('zz\r\n'))
  expect(socket).toMatchObject({ isClosed: true, sent })
  expect(streams[0]?.lefts).toBe(1)
})
