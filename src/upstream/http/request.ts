import { headerLine } from '../../base/http/header-lines.ts'
import type { Call } from '../../vendors/vendor.ts'
import { writeForm } from './form.ts'
import type { Target } from './target.ts'

// A small form is copied into one piece: that takes less than the system calls that write its pieces one by one. A
// small text may be copied once more than a large one, which would fill the memory.
const copiedBytesMax = 64 * 1024

/**
 * The bytes of a request, in the pieces in which they are written to the socket. A single piece is a copy for this call
 * alone; among several are the call's own bytes, which are sent again if it is repeated.
 */
export function writeRequest(call: Call, target: Target): readonly Uint8Array[] {
  const { body } = call
  if (typeof body === 'string') return [writeText(call, body, target)]
  if (body === undefined) return [Buffer.from(headOf(call, target, undefined), 'latin1')]
  if (body instanceof Uint8Array) return [Buffer.from(headOf(call, target, body.byteLength), 'latin1'), body]
  const { contentType, pieces, length } = writeForm(body)
  const headers = { ...call.headers, 'content-type': contentType }
  const head = Buffer.from(headOf({ ...call, headers }, target, length), 'latin1')
  return length > copiedBytesMax ? [head, ...pieces] : [Buffer.concat([head, ...pieces])]
}

const encoder = new TextEncoder()

/** One piece, so one write: a head alone would be a packet of its own. In latin1 a head has a byte per character. */
function writeText(call: Call, body: string, target: Target): Uint8Array {
  const bodyBytes = Buffer.byteLength(body)
  const head = headOf(call, target, bodyBytes)
  const length = head.length + bodyBytes
  if (bodyBytes <= copiedBytesMax) {
    // One call instead of three, at the price of joining the texts. In nearly every head a character takes a byte in
    // UTF-8 too, as the length then shows.
    const encoded = encoder.encode(head + body)
    if (encoded.length === length) return encoded
  }
  const all = Buffer.allocUnsafe(length)
  all.write(head, 'latin1')
  all.write(body, head.length)
  return all
}

function headOf(call: Call, { headStart }: Target, bodyBytes: number | undefined): string {
  let head = (call.method ?? 'POST') + headStart
  for (const name in call.headers) head += headerLine(name, call.headers[name] ?? '')
  // A POST states its length even without a body, because some servers would wait for one.
  if (bodyBytes !== undefined || call.method !== 'GET') head += `content-length: ${bodyBytes ?? 0}\r\n`
  return `${head}\r\n`
}
