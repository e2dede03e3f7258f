import type { Framing } from '../../base/http/body-decoder.ts'
import { HeaderLines } from '../../base/http/header-lines.ts'
import { MalformedMessageError } from '../../base/http/malformed-message-error.ts'

export type ResponseHead = {
  readonly status: number
  readonly headers: HeaderLines
  readonly framing: Framing
  /** Whether the connection may carry another exchange after this body. */
  readonly keepsOpen: boolean
}

const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const digits = /^\d{1,15}$/

/** Strict where two readers could differ about where the body ends: a wrong guess garbles the next answer too. */
export function readHead(text: string): ResponseHead {
  const lineEnd = text.indexOf('\r\n')
  const first = lineEnd === -1 ? text : text.slice(0, lineEnd)
  const [, minor, code] = statusLine.exec(first) ?? []
  if (code === undefined) throw new MalformedMessageError('its first line')
  const status = Number(code)
  const headers = new HeaderLines(text, first.length + 2)
  const framing = framingOf(status, headers)
  const isAmbiguous = framing.kind === 'none' ? saysMore(headers) : saysTwice(headers)
  const isClosing = minor === '0' || headers.get('connection')?.toLowerCase().includes('close') === true
  return { status, headers, framing, keepsOpen: !isClosing && !isAmbiguous && framing.kind !== 'until-close' }
}

function saysTwice(headers: HeaderLines): boolean {
  return headers.has('transfer-encoding') && headers.has('content-length')
}

/** Whether the headers announce a body where none should be. */
function saysMore(headers: HeaderLines): boolean {
  return headers.has('transfer-encoding') || (headers.get('content-length') ?? '0') !== '0'
}

function framingOf(status: number, headers: HeaderLines): Framing {
  if (status < 200 || status === 204 || status === 304) return { kind: 'none' }
  const encoding = headers.get('transfer-encoding')
  if (encoding !== undefined) {
    if (encoding.toLowerCase() !== 'chunked') throw new MalformedMessageError(`the transfer encoding ${encoding}`)
    return { kind: 'chunked' }
  }
  const length = headers.get('content-length')
  if (length === undefined) return { kind: 'until-close' }
  if (!digits.test(length)) throw new MalformedMessageError('its length')
  return { kind: 'length', bytes: Number(length) }
}
