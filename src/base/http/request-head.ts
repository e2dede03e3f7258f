import { partOf } from '../bytes.ts'
import type { Framing } from './body-decoder.ts'
import { HeaderLines } from './header-lines.ts'
import { MalformedMessageError } from './malformed-message-error.ts'

/** The headers of a request. Names are looked up in lower case. */
export class RequestHeaders {
  readonly #lines: HeaderLines
  /** The length of this request's body, where the lines are those of an earlier one with another length. */
  readonly #length: string | undefined
  /** What was looked up before, also by earlier requests with the same lines. */
  readonly #found: Map<string, string | null>

  constructor(lines: HeaderLines, length?: string, found = new Map<string, string | null>()) {
    this.#lines = lines
    this.#length = length
    this.#found = found
  }

  get count(): number {
    return this.#lines.count
  }

  /** The values of a header that came several times are joined; null where it did not come. */
  get(name: string): string | null {
    if (name === 'content-length' && this.#length !== undefined) return this.#length
    let value = this.#found.get(name)
    if (value === undefined) {
      value = this.#lines.get(name) ?? null
      this.#found.set(name, value)
    }
    return value
  }

  has(name: string): boolean {
    return this.get(name) !== null
  }

  /** The same headers with the length of another body. */
  withLength(length: string): RequestHeaders {
    return new RequestHeaders(this.#lines, length, this.#found)
  }

  *[Symbol.iterator](): Generator<[name: string, value: string]> {
    for (const [name, value] of this.#lines) {
      const isLength = this.#length !== undefined && name.toLowerCase() === 'content-length'
      yield [name, isLength ? (this.#length ?? value) : value]
    }
  }
}

export type RequestHead = {
  readonly method: string
  /** The path and query as they were sent, behind the Host, which nobody has checked. */
  readonly url: string
  readonly headers: RequestHeaders
  readonly framing: Framing
  /** Whether the client wants to send another request over the same connection. */
  readonly keepsOpen: boolean
  /** An HTTP/1.0 client knows no chunks, and must be told that the connection stays open. */
  readonly isOld: boolean
  /** The client waits for an interim response before it sends the body. */
  readonly expectsContinue: boolean
}

/** The server refuses a request itself, because no route can be found for it. */
export class RefusedHeadError extends MalformedMessageError {
  readonly status: number

  constructor(status: number, what: string) {
    super(what)
    this.name = 'RefusedHeadError'
    this.message = what
    this.status = status
  }
}

// The target is a path: an absolute one, or one of CONNECT or OPTIONS, could be routed in two ways.
const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (\/[\x21-\x7e]*) HTTP\/1\.([01])$/
const digits = /^\d{1,15}$/
// Beyond what the edge allows, which answers in the protocol of the path; these are refused without a look at the path.
const linesMax = 200

/** Strict where two readers could differ about where the request, or its body, ends. */
export function readRequestHead(text: string): RequestHead {
  const lineEnd = text.indexOf('\r\n')
  const first = lineEnd === -1 ? text : text.slice(0, lineEnd)
  const [, method, target, minor] = requestLine.exec(first) ?? []
  if (method === undefined || target === undefined)
    throw new MalformedMessageError('its first line must be a method, a path in ASCII and HTTP/1.1')
  const lines = new HeaderLines(text, lineEnd === -1 ? text.length + 1 : lineEnd + 2)
  if (lines.count > linesMax) throw new RefusedHeadError(431, `a request may have at most ${linesMax} headers`)
  const headers = new RequestHeaders(lines)
  const isOld = minor === '0'
  const expected = headers.get('expect')
  if (expected !== null && !/^100-continue$/i.test(expected))
    throw new RefusedHeadError(417, 'a request may expect 100-continue and nothing else')
  return {
    method,
    url: `http://${headers.get('host') ?? ''}${target}`,
    headers,
    framing: framingOf(headers, isOld),
    keepsOpen: keepsOpen(headers, isOld),
    isOld,
    expectsContinue: expected !== null && !isOld,
  }
}

const none: Framing = { kind: 'none' }

function framingOf(headers: RequestHeaders, isOld: boolean): Framing {
  const encoding = headers.get('transfer-encoding')
  const length = headers.get('content-length')
  if (encoding !== null) {
    // Beside a length, or in HTTP/1.0, another reader might not see the chunks.
    if (encoding.toLowerCase() !== 'chunked' || length !== null || isOld) {
      throw new MalformedMessageError('its body may be in chunks, or of a length, and in no other encoding')
    }
    return { kind: 'chunked' }
  }
  if (length === null) return none
  if (!digits.test(length)) throw new MalformedMessageError('its length')
  return { kind: 'length', bytes: Number(length) }
}

function keepsOpen(headers: RequestHeaders, isOld: boolean): boolean {
  const wishes = (headers.get('connection') ?? '').toLowerCase().split(/[ \t]*,[ \t]*/)
  return !wishes.includes('close') && (!isOld || wishes.includes('keep-alive'))
}

const cr = 13
const lf = 10

/** Empty lines before a request, which some clients send after a body, mean nothing. */
export function withoutLineEnds(bytes: Uint8Array): Uint8Array {
  let start = 0
  while (bytes[start] === cr && bytes[start + 1] === lf) start += 2
  return start === 0 ? bytes : partOf(bytes, start)
}

/**
 * To a reader that takes a lone line feed for the end of a line, such a head has an end where it has none for us.
 */
export function refuseBareLineFeeds(bytes: Uint8Array): void {
  for (let at = bytes.indexOf(lf); at !== -1; at = bytes.indexOf(lf, at + 1)) {
    if (bytes[at - 1] !== cr) throw new MalformedMessageError('a bare line feed')
  }
}
