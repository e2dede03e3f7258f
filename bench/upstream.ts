import type { Socket } from 'bun'
import { reportTo } from './control.ts'
import { messagesEvents, plainAnswer, streamEvents } from './fixtures.ts'

/**
 * A vendor that costs next to nothing: prebuilt bytes over a bare socket. A stream's events leave one by one, each as
 * its own write and its own segment, so that what is measured behind it is the relay of single events.
 *
 * Arguments: how many content chunks a stream has, and the milliseconds between two of them.
 */
const [chunks = '200', paceMs = '5'] = process.argv.slice(2)

const crlf = '\r\n'
const whole = (type: string, body: string) =>
  Buffer.from(
    `HTTP/1.1 200 OK${crlf}content-type: ${type}${crlf}content-length: ${Buffer.byteLength(body)}${crlf}${crlf}${body}`,
  )
const framed = (text: string) => `${Buffer.byteLength(text).toString(16)}${crlf}${text}${crlf}`

const plain = whole('application/json', plainAnswer)
const health = whole('application/json', '{"status":"ok"}')
const streamHead = Buffer.from(
  `HTTP/1.1 200 OK${crlf}content-type: text/event-stream; charset=utf-8${crlf}transfer-encoding: chunked${crlf}${crlf}`,
)
const streamEnd = `0${crlf}${crlf}`
// The usage event, [DONE] and the end of the body come together, as vendors send them.
const prepare = (events: readonly string[]) => ({
  paced: events.slice(0, -2).map((event) => Buffer.from(framed(event))),
  last: Buffer.from(events.slice(-2).map(framed).join('') + streamEnd),
})
const chat = prepare(streamEvents(Number(chunks)))
const messages = prepare(messagesEvents(Number(chunks)))

const headEnd = Buffer.from('\r\n\r\n')
const streamMark = Buffer.from('"stream":true')

type Incoming = { received: Buffer | undefined; timer: ReturnType<typeof setInterval> | undefined }

const listener = Bun.listen<Incoming>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { received: undefined, timer: undefined }
      socket.setNoDelay(true)
    },
    data(socket, bytes) {
      const { received } = socket.data
      const all = received === undefined ? bytes : Buffer.concat([received, bytes])
      socket.data.received = answer(socket, all) ? undefined : all
    },
    close: (socket) => clearInterval(socket.data.timer),
    error: (socket) => clearInterval(socket.data.timer),
  },
})

/** Answers a request; false while it is incomplete. A client sends the next after the answer, so there is only one. */
function answer(socket: Socket<Incoming>, request: Buffer): boolean {
  const end = request.indexOf(headEnd)
  if (end === -1) return false
  const bodyStart = end + headEnd.length
  const head = request.toString('latin1', 0, end)
  if (head.startsWith('GET ')) {
    socket.write(health)
    return true
  }
  const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  if (request.length < bodyStart + length) return false
  if (request.includes(streamMark, bodyStart)) stream(socket, head.startsWith('POST /v1/messages') ? messages : chat)
  else socket.write(plain)
  return true
}

function stream(socket: Socket<Incoming>, { paced, last }: typeof chat): void {
  let next = 0
  socket.write(streamHead)
  socket.data.timer = setInterval(() => {
    const event = paced[next++]
    socket.write(event ?? last)
    if (event === undefined) clearInterval(socket.data.timer)
  }, Number(paceMs))
}

reportTo(process, listener.port)
