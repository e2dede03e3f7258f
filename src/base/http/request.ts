import type { ClientSignal } from './client-signal.ts'

/** What routes see of a request: as much of the web's Request as they use. One of the web fits as well. */
export type HttpRequest = {
  readonly method: string
  readonly url: string
  readonly headers: HttpHeaders
  /** Aborts when the client leaves. */
  readonly signal: ClientSignal
  readonly bodyUsed: boolean
  readonly body: ReadableStream<Uint8Array> | null
  bytes(): Promise<Uint8Array>
  /** What `bytes` would give, if all of it has come already, as most bodies have. Requests of the web cannot tell. */
  bytesAtOnce?(): Uint8Array | undefined
}

/** Names are given in lower case. */
export type HttpHeaders = Pick<Headers, 'get' | 'has'> & Iterable<[name: string, value: string]>
