import { reportTo } from './control.ts'
import { editsAnswer } from './fixtures.ts'

/** A vendor that takes any upload and keeps none of it: it counts the bytes of the body and answers with an image. */
const crlf = '\r\n'
const whole = (body: string) =>
  Buffer.from(
    `HTTP/1.1 200 OK${crlf}content-type: application/json${crlf}content-length: ${Buffer.byteLength(body)}${crlf}${crlf}${body}`,
  )
const edited = whole(editsAnswer)
const health = whole('{"status":"ok"}')
const headEnd = Buffer.from('\r\n\r\n')

/** The head until it is complete, then how many bytes of the body are still to come. */
type Incoming = { head: Buffer; left: number }

const listener = Bun.listen<Incoming>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { head: Buffer.alloc(0), left: 0 }
      socket.setNoDelay(true)
    },
    data(socket, bytes) {
      const { data } = socket
      if (data.left > 0) {
        data.left -= bytes.length
        if (data.left <= 0) socket.write(edited)
        return
      }
      data.head = Buffer.concat([data.head, bytes])
      const end = data.head.indexOf(headEnd)
      if (end === -1) return
      const head = data.head.toString('latin1', 0, end)
      const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0)
      data.left = length - (data.head.length - end - headEnd.length)
      data.head = Buffer.alloc(0)
      if (data.left <= 0) socket.write(head.startsWith('GET ') ? health : edited)
    },
  },
})

reportTo(process, listener.port)
