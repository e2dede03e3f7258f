import { watchLongAnswer, type Sending } from './long-answer.ts'
import { LeaveSignal } from './client-signal.ts'
import type { ClientConnection } from './client-connection.ts'
import type { Connection } from './connection.ts'
import { RequestBody, type BodySource } from './request-body.ts'
import type { RequestHead, RequestHeaders } from './request-head.ts'
import type { HttpRequest } from './request.ts'

// Every system's socket buffer takes this much at once, so that there is no need to wait for the client to read.
const takenAtOnceBytes = 16 * 1024

/** One request and its response: what routes see of the request, and what they tell its connection. */
export class Exchange implements HttpRequest, Connection, Sending, BodySource {
  readonly head: RequestHead
  readonly content: RequestBody
  readonly signal = new LeaveSignal()
  readonly #connection: ClientConnection
  #body: ReadableStream<Uint8Array> | undefined
  /** A client that waits for permission to send its body has it. */
  #isPermitted = false
  #isFollowed = false

  constructor(head: RequestHead, connection: ClientConnection) {
    this.head = head
    this.content = new RequestBody(head.framing, this)
    this.#connection = connection
  }

  get method(): string {
    return this.head.method
  }

  get url(): string {
    return this.head.url
  }

  get headers(): RequestHeaders {
    return this.head.headers
  }

  get bodyUsed(): boolean {
    return this.content.isUsed
  }

  get body(): ReadableStream<Uint8Array> | null {
    if (this.head.framing.kind === 'none') return null
    this.#body ??= this.content.stream()
    return this.#body
  }

  bytes(): Promise<Uint8Array> {
    return this.content.bytes()
  }

  bytesAtOnce(): Uint8Array | undefined {
    return this.content.bytesAtOnce()
  }

  /** A body that is read after its response was finished must not hold up, or let go, the next one. */
  pause(): void {
    if (this.#connection.carries(this)) this.#connection.pause()
  }

  resume(): void {
    if (this.#connection.carries(this)) this.#connection.resume()
  }

  wanted(): void {
    if (!this.head.expectsContinue || this.#isPermitted) return
    this.#isPermitted = true
    if (this.#connection.carries(this)) this.#connection.permit()
  }

  address(): string {
    return this.#connection.address
  }

  headerCount(): number {
    return this.head.headers.count
  }

  follow(): void {
    this.#isFollowed = true
    this.allow(0)
  }

  letGo(bytes = 0): void {
    this.#isFollowed = false
    this.allow(this.#connection.idleSeconds)
    if (bytes > takenAtOnceBytes) watchLongAnswer(this, this.#connection.watching)
  }

  isUnderway(): boolean {
    return !this.#isFollowed && this.#connection.carries(this)
  }

  allow(seconds: number): void {
    if (this.#connection.carries(this)) this.#connection.allow(seconds)
  }

  unreadBytes(ageMsMax: number): Promise<number | undefined> {
    return this.#connection.unreadBytes(ageMsMax)
  }
}
