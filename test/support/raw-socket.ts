import { connect, type Socket } from 'node:net'

/** The answer to bytes that were written to a socket without any client library. */
export type RawAnswer = {
  /** 0 if no answer came. */
  readonly status: number
  readonly text: string
  /** Whether the server closed the connection by itself. */
  readonly closed: boolean
}

const quietMsDefault = 10_000

/**
 * Writes bytes as they are and reads until the server closes, the first answer is complete, or nothing has come for a
 * while. With `wantsClose` it waits for the server to close.
 */
export function sendRaw(
  url: string,
  request: string | Uint8Array,
  { wantsClose = false, quietMs = quietMsDefault }: { wantsClose?: boolean; quietMs?: number } = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(Number(port), hostname)
    const finish = (closed: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0), text, closed })
    }
    const timer = setTimeout(() => finish(false), quietMs)
    socket.on('connect', () => socket.write(request))
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1')
      if (!wantsClose && isWhole(text)) finish(false)
    })
    socket.on('error', () => finish(true))
    socket.on('close', () => finish(true))
  })
}

/** Whether head and body of the first answer are complete, by its Content-Length or its last chunk. */
function isWhole(text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return false
  const head = text.slice(0, headEnd)
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length !== undefined) return text.length >= headEnd + 4 + Number(length)
  return /\r\ntransfer-encoding: chunked/i.test(head) && text.endsWith('\r\n0\r\n\r\n')
}

/** Joins the lines of a request's head. */
export function lines(...of: readonly string[]): string {
  return `${of.join('\r\n')}\r\n\r\n`
}

/** The bytes of a JSON POST with the client's key. */
export function jsonPost(at: At, body: object, path = '/v1/chat/completions'): string {
  const text = JSON.stringify(body)
  const head = lines(
    `POST ${path} HTTP/1.1`,
    `Host: ${new URL(at.url).host}`,
    `Authorization: Bearer ${at.key}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`,
  )
  return head + text
}

export type At = { readonly url: string; readonly key: string }

/** Called for everything that is read, with the number of bytes now and in total. */
export type OnRead = (socket: Socket, bytes: number, all: number) => void

/** A client that reads the answer to its request as fast, and as far, as `onRead` lets it. */
export async function visit(at: At, onRead: OnRead, body: object, path?: string) {
  const socket = await openSocket(at.url)
  let read = 0
  let tail = ''
  let isClosed = false
  socket.on('error', () => {})
  socket.on('close', () => (isClosed = true))
  socket.on('data', (bytes: Buffer) => {
    read += bytes.length
    tail = (tail + bytes.toString('latin1')).slice(-200)
    onRead(socket, bytes.length, read)
  })
  socket.write(jsonPost(at, body, path))
  return { socket, read: () => read, tail: () => tail, isClosed: () => isClosed }
}

/** A connected socket, for tests that write or read slowly. */
export function openSocket(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve(socket))
    socket.once('error', reject)
  })
}
