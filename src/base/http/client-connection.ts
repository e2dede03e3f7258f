import type { Socket } from 'bun'
import { partOf } from '../bytes.ts'
import { newRequestId } from '../ids.ts'
import type { Member } from '../intrusive-set.ts'
import type { Bytes } from '../spliced.ts'
import { Exchange } from './exchange.ts'
import { HeadMemory } from './head-memory.ts'
import { MalformedMessageError } from './malformed-message-error.ts'
import { Outflow } from './outflow.ts'
import type { Vessel } from './pouring.ts'
import { writeHead } from './reply.ts'
import {
  readRequestHead,
  refuseBareLineFeeds,
  RefusedHeadError,
  withoutLineEnds,
  type RequestHead,
} from './request-head.ts'
import { Sender } from './sender.ts'
import type { Serving } from './serving.ts'

const headBytesMax = 16 * 1024
// A head that drips in occupies a socket no longer than this.
const headSecondsMax = 12
// How long a client may go on sending after the last response, before the socket is closed under it: what a client
// still sends when that happens would destroy what it has not read yet.
const lingerSecondsMax = 2
// What may wait here while an earlier request on the connection is answered.
const pipelinedBytesMax = 64 * 1024

const headEnd = Buffer.from('\r\n\r\n')
const none = new Uint8Array(0)

// Methods of Buffer for plain Uint8Arrays: making a Buffer of the bytes would cost more than what is done with them.
const { indexOf, latin1Slice } = Buffer.prototype

/** One socket of a client, and the requests that come over it, one after another. */
export class ClientConnection implements Vessel, Member {
  readonly #serving: Serving
  readonly #socket: Socket<ClientConnection>
  readonly #memory = new HeadMemory()
  /** The peer's address, asked for at once: a closed socket does not tell it any more. */
  readonly address: string
  /** Bytes of a head that is not whole, or of requests whose turn has not come. */
  #unread: Uint8Array | undefined
  #exchange: Exchange | undefined
  readonly #sender: Sender
  readonly #out: Outflow
  #isClosed = false
  /** The last response is sent: what still comes is dropped. */
  #isDeaf = false
  #isPaused = false
  #quietSecondsMax: number
  #quietSeconds = 0
  #headSeconds = 0
  place = -1

  constructor(serving: Serving, socket: Socket<ClientConnection>) {
    this.#serving = serving
    this.#socket = socket
    this.#out = new Outflow(socket)
    this.#sender = new Sender(this, serving)
    this.address = socket.remoteAddress
    this.#quietSecondsMax = this.idleSeconds
    serving.connections.add(this)
  }

  get idleSeconds(): number {
    return this.watching.idleSeconds
  }

  get watching(): Serving['watching'] {
    return this.#serving.watching
  }

  /** Whether the response of this exchange is not finished. */
  carries(exchange: Exchange): boolean {
    return this.#exchange === exchange
  }

  /** How long the connection may be quiet from now on; 0 seconds for ever. */
  allow(seconds: number): void {
    this.#quietSecondsMax = seconds
    this.#quietSeconds = 0
  }

  unreadBytes(ageMsMax: number): Promise<number | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined)
    const { localPort, remotePort: port } = this.#socket
    return this.#serving.sockets.unreadBytes({ localPort, address: this.address, port }, ageMsMax)
  }

  received(bytes: Uint8Array): void {
    if (this.#isDeaf) return
    this.#quietSeconds = 0
    try {
      this.#take(bytes)
    } catch (thrown) {
      if (!(thrown instanceof MalformedMessageError)) throw thrown
      this.#refuse(thrown)
    }
  }

  drained(): void {
    this.#quietSeconds = 0
    if (this.#out.drain()) this.#sender.pouring?.body.drained()
  }

  closed(): void {
    this.#isClosed = true
    this.#isDeaf = true
    this.#out.drop()
    this.#unread = undefined
    this.#serving.connections.remove(this)
    this.#serving.closed()
    this.#abandon()
  }

  /** Called every second. */
  tick(): void {
    this.#quietSeconds = this.#isAtWork ? 0 : this.#quietSeconds + 1
    const isHead = this.#exchange === undefined && this.#unread !== undefined
    this.#headSeconds = isHead ? this.#headSeconds + 1 : 0
    if (this.#isDeaf && this.#out.isEmpty) {
      if (this.#quietSeconds > lingerSecondsMax) this.terminate()
    } else if (this.#headSeconds > headSecondsMax || this.#isTooQuiet) this.terminate()
  }

  /** Closes the connection once the response under way, if any, is sent. */
  stop(): void {
    if (this.#exchange === undefined) this.#hearNoMore()
  }

  /**
   * Closes the connection now. A response under way is cut off by a reset, so that no client takes what it has for the
   * whole. What was sent before that, and is on its way to a slow client, would be lost with a reset.
   */
  terminate(): void {
    if (this.#exchange === undefined) this.#socket.end()
    else this.#socket.terminate()
  }

  pause(): void {
    if (this.#isPaused || this.#isClosed) return
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    if (!this.#isPaused || this.#isClosed) return
    this.#isPaused = false
    this.#socket.resume()
  }

  /** Lets a client that waits for permission send its body, unless it has its answer, or the beginning of one. */
  permit(): void {
    if (this.#sender.pouring !== undefined || this.#isDeaf) return
    this.write(Buffer.from('HTTP/1.1 100 Continue\r\n\r\n', 'latin1'))
  }

  write(bytes: Uint8Array): boolean {
    return !this.#isClosed && this.#isSent(this.#out.write(bytes))
  }

  writeChunk(bytes: Bytes): boolean {
    return !this.#isClosed && this.#isSent(this.#out.writeChunk(bytes))
  }

  #isSent(isTaken: boolean): boolean {
    if (isTaken) this.#quietSeconds = 0
    return isTaken
  }

  /** The request has come, and its response has not begun: how long that may take is not the connection's business. */
  get #isAtWork(): boolean {
    return this.#exchange?.content.isOver === true && this.#sender.pouring === undefined && this.#out.isEmpty
  }

  get #isTooQuiet(): boolean {
    return this.#quietSecondsMax > 0 && this.#quietSeconds > this.#quietSecondsMax
  }

  #take(bytes: Uint8Array): void {
    const exchange = this.#exchange
    if (exchange === undefined) return this.#readHead(bytes)
    const taken = exchange.content.isOver ? 0 : exchange.content.take(bytes)
    if (taken < bytes.length) this.#keep(partOf(bytes, taken))
  }

  /** Keeps what belongs to the next request until its turn comes. */
  #keep(bytes: Uint8Array): void {
    this.#unread = this.#withUnread(bytes)
    if (this.#unread.length > pipelinedBytesMax) this.pause()
  }

  #withUnread(bytes: Uint8Array): Uint8Array {
    if (this.#unread === undefined) return bytes
    return bytes.length === 0 ? this.#unread : Buffer.concat([this.#unread, bytes])
  }

  #readHead(bytes: Uint8Array): void {
    const all = withoutLineEnds(this.#withUnread(bytes))
    this.#unread = undefined
    if (all.length === 0) return
    const recalled = this.#memory.recall(all)
    if (recalled !== undefined) return this.#begin(recalled, all, this.#memory.end)
    const end = indexOf.call(all, headEnd)
    // Of a head that is not whole, the last three bytes may be the beginning of its end.
    if ((end === -1 ? all.length - headEnd.length + 1 : end) > headBytesMax)
      throw new RefusedHeadError(431, 'the head of a request may have at most 16 KiB')
    if (end === -1) {
      refuseBareLineFeeds(all)
      this.#unread = all
      return
    }
    const head = readRequestHead(latin1Slice.call(all, 0, end))
    this.#memory.remember(all, end + headEnd.length, head)
    this.#begin(head, all, end + headEnd.length)
  }

  #begin(head: RequestHead, all: Uint8Array, headLength: number): void {
    const exchange = new Exchange(head, this)
    this.#exchange = exchange
    this.#serving.underway++
    if (all.length > headLength) this.#take(partOf(all, headLength))
    const setOut = () => this.#answer(exchange)
    // What is only read is answered at once.
    if (head.method === 'POST') this.#serving.arrivals.join(setOut)
    else setOut()
  }

  #answer(exchange: Exchange): void {
    try {
      const answer = this.#serving.answer(exchange, exchange)
      if (!(answer instanceof Promise)) return this.#sender.send(exchange, answer)
      answer.then(
        (response) => this.#sender.send(exchange, response),
        (thrown: unknown) => this.#sender.fail(exchange, thrown),
      )
    } catch (thrown) {
      this.#sender.fail(exchange, thrown)
    }
  }

  /** The response is written. Once the client's socket has taken it, the next request has its turn. */
  finish(exchange: Exchange, keeps: boolean): void {
    if (!keeps) {
      this.#isDeaf = true
      exchange.content.fail(new Error('the request was answered before its body had come'))
    }
    this.#out.whenSent(() => {
      if (!this.carries(exchange)) return
      this.#exchange = this.#sender.pouring = undefined
      this.#serving.underway--
      this.allow(this.idleSeconds)
      if (!keeps || this.#serving.isStopping) return this.#hearNoMore()
      this.resume()
      // In the next turn: a client may have sent thousands of requests in one packet, and others come in between.
      if (this.#unread !== undefined) setImmediate(() => this.#goOn())
    })
  }

  #goOn(): void {
    if (this.#exchange === undefined) this.received(none)
  }

  /** The body of a response broke off: the client is not to take what it has for the whole. */
  cut(exchange: Exchange, isNoticed: boolean): void {
    if (!this.carries(exchange)) return
    // A reset would also destroy what the client has received and not read yet.
    if (isNoticed && this.#out.isEmpty) {
      this.#abandon()
      this.#hearNoMore()
    } else this.terminate()
  }

  /** Answers what is not HTTP, and hears no more. */
  #refuse(refusal: MalformedMessageError): void {
    if (this.#sender.pouring !== undefined) return this.terminate()
    this.#abandon()
    const status = refusal instanceof RefusedHeadError ? refusal.status : 400
    const headers = { 'content-type': 'text/plain', 'x-request-id': newRequestId() }
    const head = writeHead(status, headers, 'until-close', 'close')
    this.write(Buffer.from(`${head}${refusal.message}\n`, 'latin1'))
    this.#hearNoMore()
  }

  /** Nobody waits for the response any more. */
  #abandon(): void {
    const exchange = this.#exchange
    const pouring = this.#sender.pouring
    if (exchange === undefined) return
    this.#exchange = this.#sender.pouring = undefined
    this.#serving.underway--
    exchange.content.fail(new Error('the client hung up'))
    try {
      exchange.signal.abort()
    } finally {
      pouring?.body.left()
    }
  }

  /** Says, once all is sent, that no more is to come, and waits a moment for the client to close. */
  #hearNoMore(): void {
    this.#isDeaf = true
    this.allow(this.idleSeconds)
    this.resume()
    this.#out.whenSent(() => {
      if (!this.#isClosed) this.#socket.shutdown()
    })
  }
}
