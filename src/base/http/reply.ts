import { STATUS_CODES } from 'node:http'
import { unshared } from '../bytes.ts'
import { headerLine } from './header-lines.ts'
import { streamOf, type PushedBody } from './pushed-body.ts'

/**
 * A response as the server sends it best: plain headers, and a body that is whole or pushed. What is asked seldom is
 * answered with a Response of the web instead, which takes three microseconds more.
 */
export class Reply {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly body: Uint8Array | PushedBody

  /** `headers` have lower-case names and become this reply's own. */
  constructor(status: number, headers: Record<string, string>, body: Uint8Array | PushedBody) {
    this.status = status
    this.headers = new ReplyHeaders(headers)
    this.body = body
  }
}

/** The part of the web's Headers that is used on every response. */
export class ReplyHeaders {
  readonly all: Record<string, string>

  constructor(all: Record<string, string>) {
    this.all = all
  }

  get(name: string): string | null {
    return this.all[name] ?? null
  }

  set(name: string, value: string): void {
    this.all[name] = value
  }

  append(name: string, value: string): void {
    const before = this.all[name]
    this.all[name] = before === undefined ? value : `${before}, ${value}`
  }
}

/** A JSON document. */
export function jsonReply(body: unknown, { status = 200, headers = {} }: ReplyOptions = {}): Reply {
  return new Reply(status, { 'content-type': 'application/json', ...headers }, Buffer.from(JSON.stringify(body)))
}

export function emptyReply(status: number, headers: Readonly<Record<string, string>>): Reply {
  return new Reply(status, { ...headers }, noBytes)
}

type ReplyOptions = { readonly status?: number; readonly headers?: Readonly<Record<string, string>> }

const noBytes = new Uint8Array(0)

export type HttpResponse = Response | Reply

/** For code that reads a response in this process. */
export function asResponse(response: HttpResponse): Response {
  if (response instanceof Response) return response
  const { status, headers, body } = response
  const content = body instanceof Uint8Array ? unshared(body) : streamOf(body)
  return new Response(content, { status, headers: headers.all })
}

/** Headers that are the connection's business, whatever the code behind it says. */
function isOwn(name: string): boolean {
  return name === 'connection' || name === 'content-length' || name === 'transfer-encoding' || name === 'date'
}

/** How the body is delimited: by its length, in chunks, by the end of the connection, or because there is none. */
export type Delimiting = number | 'chunked' | 'until-close' | 'none'

/** The head of a response. In latin1 it has a byte per character. */
export function writeHead(
  status: number,
  headers: Readonly<Record<string, string>>,
  delimiting: Delimiting,
  connection: 'close' | 'keep-alive' | undefined,
): string {
  let head = status === 200 ? 'HTTP/1.1 200 OK\r\n' : `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`
  for (const name in headers) {
    if (!isOwn(name)) head += headerLine(name, headers[name] ?? '')
  }
  head += `date: ${dateNow()}\r\n`
  if (typeof delimiting === 'number') head += `content-length: ${delimiting}\r\n`
  else if (delimiting === 'chunked') head += 'transfer-encoding: chunked\r\n'
  return connection === undefined ? `${head}\r\n` : `${head}connection: ${connection}\r\n\r\n`
}

let dateSecond = 0
let dateText = ''

/** Made once a second, because writing a date takes longer than the rest of the head. */
function dateNow(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return dateText
}
