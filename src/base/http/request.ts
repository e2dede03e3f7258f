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
}

/** Names are given in lower case. */
export type HttpHeaders = Pick<Headers, 'get' | 'has'> & Iterable<[name: string, value: string]>
