import type { Socket } from 'bun'
import type { Timers } from '../../base/clock.ts'
import { discard, partOf } from '../../base/bytes.ts'
import { asError } from '../../base/errors.ts'
import { bodyDecoderFor, type BodyDecoder } from '../../base/http/body-decoder.ts'
import type { Flow, Incoming } from './incoming.ts'
import { MalformedMessageError } from '../../base/http/malformed-message-error.ts'
import { readHead, type ResponseHead } from './response-head.ts'
import type { Target } from './target.ts'

// Far above the size of any vendor's response head.
const headBytesMax = 64 * 1024
// Smaller requests are left to the collector.
const smallBytesMax = 64 * 1024
const headEnd = Buffer.from('\r\n\r\n')
// No connect may take longer: a vendor that never finishes its TLS handshake would keep the socket for ever.
const openingMsMax = 30_000

// Methods of Buffer for plain Uint8Arrays: making a Buffer of the bytes would cost more than what is done with them.
const { indexOf, latin1Slice } = Buffer.prototype

/** The connection ended before the response did. */
export class ConnectionClosedError extends Error {
  /** Whether not even the first byte of a response had come. */
  readonly isSilent: boolean

  constructor(isSilent: boolean) {
    super('the connection was closed')
    this.name = 'ConnectionClosedError'
    this.isSilent = isSilent
  }
}

/** Takes back a connection whose exchange came to its proper end, with the head of that exchange's response. */
type Free = (connection: Connection, last: ResponseHead) => void

/** One socket to a vendor. It carries one exchange at a time, and perhaps another after that came to its proper end. */
export class Connection implements Flow {
  readonly origin: string
  /** By the monotonic clock of the pool that keeps it; it must not be used later. */
  usableUntil = 0
  #socket: Socket<Connection> | undefined
  #incoming: Incoming | undefined
  #head: ResponseHead | undefined
  #headBytes: Uint8Array | undefined
  #body: BodyDecoder | undefined
  #unwritten: Uint8Array[] = []
  /** The whole request, where it was copied into one piece for this call alone. */
  #copy: Uint8Array | undefined
  /** Nothing has come for the current request, not even an interim response. */
  #isSilent = true
  #isClosed = false
  readonly #free: Free

  private constructor(origin: string, free: Free) {
    this.origin = origin
    this.#free = free
  }

  /** Resolves when it can be written to: connected, and over https with the vendor's certificate verified. */
  static open({ origin, isSecure, hostname, port }: Target, free: Free, timers: Timers): Promise<Connection> {
    const opened = Promise.withResolvers<Connection>()
    const connection = new Connection(origin, free)
    const notTooLate = timers.after(openingMsMax, () => {
      const tooLate = new Error('the connection took too long to be made')
      opened.reject(tooLate)
      connection.destroy(tooLate)
    })
    opened.promise.then(notTooLate, notTooLate)
    const options = {
      hostname,
      port,
      data: connection,
      socket: {
        binaryType: 'uint8array' as const,
        open(socket: Socket<Connection>) {
          connection.#socket = socket
          if (connection.#isClosed) socket.terminate()
          else if (!isSecure) opened.resolve(connection)
        },
        handshake(socket: Socket<Connection>, isTrusted: boolean, refusal: Error | null) {
          if (isTrusted) return opened.resolve(connection)
          opened.reject(refusal ?? new Error('the vendor could not prove who it is'))
          socket.terminate()
        },
        data: (_socket: Socket<Connection>, bytes: Uint8Array) => connection.#received(bytes),
        drain: () => connection.#write(),
        close(_socket: Socket<Connection>, error?: Error) {
          opened.reject(error ?? new Error('the connection was closed while it was made'))
          connection.#closed(error)
        },
        error() {}, // `close` follows and carries all that matters
        connectError: (_socket: Socket<Connection>, error: Error) => opened.reject(error),
      },
    }
    Bun.connect(isSecure ? { ...options, tls: { serverName: hostname, rejectUnauthorized: true } } : options).catch(
      opened.reject,
    )
    return opened.promise
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Sends a request; its response goes to `incoming`. */
  ask(pieces: readonly Uint8Array[], incoming: Incoming): void {
    this.#incoming = incoming
    this.#isSilent = true
    this.#socket?.ref()
    this.#unwritten = [...pieces]
    this.#copy = pieces.length === 1 ? pieces[0] : undefined
    if (this.#isClosed) this.#closed()
    else this.#write()
  }

  /** Ends the connection, whatever it carries. */
  destroy(reason: Error): void {
    this.#isClosed = true
    this.#copy = undefined
    this.#unwritten = [] // it may be an upload, and the reader of the answer may keep this object for a while
    this.#fail(reason)
    this.#socket?.terminate()
  }

  /** The connection is idle: it does not keep the process from ending. */
  rest(): void {
    this.#socket?.unref()
  }

  /** Called by the decoder of a body. */
  push(piece: Uint8Array): void {
    this.#incoming?.push(piece)
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    if (!this.#isClosed) this.#socket?.resume()
  }

  #write(): void {
    for (;;) {
      const [piece] = this.#unwritten
      if (piece === undefined || this.#socket === undefined) return
      const written = piece.length === 0 ? 0 : Math.max(0, this.#socket.write(piece))
      if (written < piece.length) {
        this.#unwritten[0] = piece.subarray(written)
        return // until it drains
      }
      this.#unwritten.shift()
      this.#discardCopy()
    }
  }

  /** Frees a large request once it is written: the vendor may take minutes to answer, and the collector more. */
  #discardCopy(): void {
    if (this.#copy !== undefined && this.#copy.length > smallBytesMax) discard(this.#copy)
    this.#copy = undefined
  }

  #received(bytes: Uint8Array): void {
    try {
      if (this.#incoming === undefined) throw new MalformedMessageError('nobody had asked')
      this.#isSilent = false
      const rest = this.#body === undefined ? this.#readHead(bytes) : bytes
      if (rest !== undefined) this.#readBody(rest)
    } catch (thrown) {
      this.destroy(asError(thrown))
    }
  }

  /** Gives the bytes after the head, once the head is whole. */
  #readHead(bytes: Uint8Array): Uint8Array | undefined {
    let all = this.#headBytes === undefined ? bytes : Buffer.concat([this.#headBytes, bytes])
    let from = Math.max(0, (this.#headBytes?.length ?? 0) - headEnd.length)
    for (;;) {
      const end = indexOf.call(all, headEnd, from)
      if ((end === -1 ? all.length : end) > headBytesMax) throw new MalformedMessageError('its head has no end')
      this.#headBytes = end === -1 ? all : undefined
      if (end === -1) return undefined
      const head = readHead(latin1Slice.call(all, 0, end))
      all = partOf(all, end + headEnd.length)
      from = 0
      if (head.status === 101) throw new MalformedMessageError('it wants to speak another protocol')
      if (head.status < 200) continue // an interim response: the answer is still to come
      this.#head = head
      this.#body = bodyDecoderFor(head.framing)
      this.#incoming?.begin(head)
      return all
    }
  }

  #readBody(bytes: Uint8Array): void {
    if (this.#body === undefined) return
    const taken = this.#body.take(bytes, this)
    if (this.#body.isOver) this.#finish(taken < bytes.length)
  }

  #finish(hasMore: boolean): void {
    const incoming = this.#incoming
    const head = this.#head
    const isWritten = this.#unwritten.length === 0
    this.#incoming = undefined
    this.#head = undefined
    this.#body = undefined
    // Not reused where bytes came that were not asked for, or the vendor answered before it had read the whole request.
    if (head?.keepsOpen === true && isWritten && !hasMore && !this.#isClosed) this.#free(this, head)
    else this.destroy(new ConnectionClosedError(false))
    incoming?.end()
  }

  #closed(error?: Error): void {
    this.#isClosed = true
    if (this.#head?.framing.kind === 'until-close' && error === undefined) this.#finish(false)
    else this.#fail(new ConnectionClosedError(this.#isSilent))
  }

  #fail(reason: Error): void {
    const incoming = this.#incoming
    this.#incoming = undefined
    incoming?.fail(reason)
  }
}
