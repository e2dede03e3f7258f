import type { Exchange } from './exchange.ts'
import { Pouring, type Vessel } from './pouring.ts'
import { pushed, type PushedBody } from './pushed-body.ts'
import { Reply, writeHead, type HttpResponse } from './reply.ts'
import type { Serving } from './serving.ts'

// A larger body is not copied behind its head.
const copiedBytesMax = 64 * 1024

const none = new Uint8Array(0)

/** Sends the responses of one connection, one after another. */
export class Sender {
  readonly #connection: Vessel & { terminate(): void }
  readonly #serving: Pick<Serving, 'isStopping' | 'mistaken'>
  /** The body that is being poured; undefined where a response is whole, or has not begun. */
  pouring: Pouring | undefined

  constructor(connection: Vessel & { terminate(): void }, serving: Pick<Serving, 'isStopping' | 'mistaken'>) {
    this.#connection = connection
    this.#serving = serving
  }

  /** Must not throw, because nobody would hear of it. */
  send(exchange: Exchange, response: HttpResponse): void {
    try {
      if (!(response instanceof Reply)) {
        if (this.#connection.carries(exchange)) void this.#sendWebResponse(exchange, response)
        else response.body?.cancel().catch(() => {})
        return
      }
      const { status, headers, body } = response
      if (!(body instanceof Uint8Array)) this.#pour(exchange, status, headers.all, 'chunked', body)
      else if (this.#connection.carries(exchange)) this.#sendWhole(exchange, status, headers.all, body)
    } catch (thrown) {
      this.fail(exchange, thrown)
    }
  }

  /** Answers what the code behind the server failed to answer by mistake. */
  fail(exchange: Exchange, thrown: unknown): void {
    this.#serving.mistaken(thrown)
    if (!this.#connection.carries(exchange)) return
    if (this.pouring === undefined) this.#sendWhole(exchange, 500, {}, none)
    else this.#connection.terminate()
  }

  async #sendWebResponse(exchange: Exchange, response: Response): Promise<void> {
    try {
      const { status, body } = response
      const headers = Object.fromEntries(response.headers)
      const length = headers['content-length']
      if (body === null) {
        this.#sendWhole(exchange, status, headers, none, exchange.method === 'HEAD' ? Number(length ?? 0) : 0)
      }
      // A document is made in one go; anything else that does not say its length is sent as it comes.
      else if (length === undefined && headers['content-type']?.startsWith('application/json') === true) {
        const bytes = await response.bytes()
        if (this.#connection.carries(exchange)) this.#sendWhole(exchange, status, headers, bytes)
      } else this.#pour(exchange, status, headers, length === undefined ? 'chunked' : Number(length), pushed(body))
    } catch (thrown) {
      this.fail(exchange, thrown)
    }
  }

  #sendWhole(
    exchange: Exchange,
    status: number,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    length: number | 'unknown' = body.length,
  ): void {
    const keeps = this.#keeps(exchange, headers)
    const isBare = status === 204 || status === 304
    const head = writeHead(status, headers, isBare || length === 'unknown' ? 'none' : length, said(exchange, keeps))
    const content = isBare || exchange.method === 'HEAD' ? none : body
    exchange.letGo(content.length)
    if (content.length <= copiedBytesMax) {
      const all = Buffer.allocUnsafe(head.length + content.length)
      all.write(head, 'latin1')
      all.set(content, head.length)
      this.#connection.write(all)
    } else {
      this.#connection.write(Buffer.from(head, 'latin1'))
      this.#connection.write(content)
    }
    this.#connection.finish(exchange, keeps)
  }

  #pour(
    exchange: Exchange,
    status: number,
    headers: Readonly<Record<string, string>>,
    size: number | 'chunked',
    body: PushedBody,
  ): void {
    let pouring: Pouring | undefined
    try {
      if (!this.#connection.carries(exchange)) return
      if (exchange.method === 'HEAD' || status === 204 || status === 304) {
        return this.#sendWhole(exchange, status, headers, none, size === 'chunked' ? 'unknown' : size)
      }
      const delimiting = size === 'chunked' && exchange.head.isOld ? 'until-close' : size
      const keeps = this.#keeps(exchange, headers) && delimiting !== 'until-close'
      const head = writeHead(status, headers, delimiting, said(exchange, keeps))
      pouring = this.pouring = new Pouring(this.#connection, exchange, body, { head, delimiting, keeps })
      if (typeof size === 'number') exchange.letGo(size)
    } finally {
      if (pouring === undefined) body.left()
    }
    body.begin(pouring)
  }

  /** Whether the connection may carry another request after this response. */
  #keeps({ head, content }: Exchange, headers: Readonly<Record<string, string>>): boolean {
    return head.keepsOpen && content.isOver && headers['connection'] !== 'close' && !this.#serving.isStopping
  }
}

function said({ head }: Exchange, keeps: boolean): 'close' | 'keep-alive' | undefined {
  if (!keeps) return 'close'
  return head.isOld ? 'keep-alive' : undefined
}
