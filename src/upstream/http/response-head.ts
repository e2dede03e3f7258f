/** How a response says where its body ends: by its length, in chunks, by closing, or that there is none. */
export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until-close' }

export type ResponseHead = {
  readonly status: number
  /** By their names in lower case; one that came several times is joined. */
  readonly headers: ReadonlyMap<string, string>
  readonly framing: Framing
  /** After its body, the connection may carry another exchange. */
  readonly keepsOpen: boolean
}

/** The vendor does not speak HTTP/1.1, or not so that all would read it alike. */
export class Garbled extends Error {
  constructor(what: string) {
    super(`not an HTTP/1.1 response: ${what}`)
    this.name = 'Garbled'
  }
}

const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// Half of a line end begins a line for some readers, and others skip what nobody can see.
// oxlint-disable-next-line no-control-regex
const control = /[\0-\x08\n-\x1f\x7f]/

/** Strict where two readers could differ about where the body ends: whoever is wrong reads the next answer wrong too. */
export function readHead(text: string): ResponseHead {
  const [first = '', ...lines] = text.split('\r\n')
  const [, minor, code] = statusLine.exec(first) ?? []
  if (code === undefined || control.test(first)) throw new Garbled('its first line')
  const status = Number(code)
  const headers = readHeaders(lines)
  const framing = framingOf(status, headers)
  const isAmbiguous = framing.kind === 'none' ? saysMore(headers) : saysTwice(headers)
  const isClosing = minor === '0' || headers.get('connection')?.toLowerCase().includes('close') === true
  return { status, headers, framing, keepsOpen: !isClosing && !isAmbiguous && framing.kind !== 'until-close' }
}

function saysTwice(headers: ReadonlyMap<string, string>): boolean {
  return headers.has('transfer-encoding') && headers.has('content-length')
}

/** A body may follow where none should be. */
function saysMore(headers: ReadonlyMap<string, string>): boolean {
  return headers.has('transfer-encoding') || (headers.get('content-length') ?? '0') !== '0'
}

function readHeaders(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    if (colon === -1 || !token.test(name)) throw new Garbled('a header without a name')
    if (control.test(line)) throw new Garbled('a header with a control character')
    const value = withoutBlanks(line, colon + 1)
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return headers
}

/** `trim` takes away more than HTTP does, and a length that only some can read is none. */
function withoutBlanks(line: string, from: number): string {
  let start = from
  let end = line.length
  while (start < end && isBlank(line.charCodeAt(start))) start++
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--
  return line.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9
}

function framingOf(status: number, headers: ReadonlyMap<string, string>): Framing {
  if (status < 200 || status === 204 || status === 304) return { kind: 'none' }
  const encoding = headers.get('transfer-encoding')
  if (encoding !== undefined) {
    if (encoding.toLowerCase() !== 'chunked') throw new Garbled(`the transfer encoding ${encoding}`)
    return { kind: 'chunked' }
  }
  const length = headers.get('content-length')
  if (length === undefined) return { kind: 'until-close' }
  if (!/^\d{1,15}$/.test(length)) throw new Garbled('its length')
  return { kind: 'length', bytes: Number(length) }
}
