import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bodyDecoderFor, type Framing } from './body-decoder.ts'
import { MalformedMessageError } from './malformed-message-error.ts'

type Decoded = { readonly body: Buffer; readonly taken: number; readonly isOver: boolean }

/** Decodes bytes that arrive in pieces, cut at these places. */
function decode(framing: Framing, bytes: Uint8Array, cuts: readonly number[] = []): Decoded {
  const decoder = bodyDecoderFor(framing)
  const pieces: Uint8Array[] = []
  let taken = 0
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  for (let i = 1; i < places.length && !decoder.isOver; i++) {
    const piece = bytes.subarray(places[i - 1], places[i])
    // A copy, because the source of the bytes may reuse their memory after they were read.
    const used = decoder.take(piece, { push: (part) => pieces.push(Buffer.from(part)) })
    if (!decoder.isOver) expect(used).toBe(piece.length)
    taken += used
  }
  return { body: Buffer.concat(pieces), taken, isOver: decoder.isOver }
}

const chunked = { kind: 'chunked' } as const
const latin1 = (text: string) => Buffer.from(text, 'latin1')

const visible = fc.string({
  unit: fc.constantFrom(' ', '\t', '"', ';', '=', 'a', 'X', '0', ':', '\x80', '\xff'),
  maxLength: 12,
})
const extension = fc.oneof(
  fc.constant(''),
  visible.map((text) => `;${text}`),
)
const size = (bytes: number) =>
  fc
    .record({ zeros: fc.constantFrom('', '0', '000'), isUpper: fc.boolean() })
    .map(({ zeros, isUpper }) => zeros + (isUpper ? bytes.toString(16).toUpperCase() : bytes.toString(16)))
const chunk = fc
  .uint8Array({ minLength: 1, maxLength: 70 })
  .chain((data) => fc.record({ data: fc.constant(data), size: size(data.length), extension }))
const trailer = fc
  .tuple(fc.constantFrom('x', 'expires', 'content-length'), visible)
  .map(([name, text]) => `${name}:${text}`)
const wholeBody = fc.record({
  chunks: fc.array(chunk, { maxLength: 6 }),
  last: size(0),
  extension,
  trailers: fc.array(trailer, { maxLength: 3 }),
})
const cuts = fc.array(fc.nat(600), { maxLength: 12 })

function written({
  chunks,
  last,
  extension: lastExtension,
  trailers,
}: typeof wholeBody extends fc.Arbitrary<infer T> ? T : never) {
  const parts = chunks.flatMap((one) => [latin1(`${one.size}${one.extension}\r\n`), one.data, latin1('\r\n')])
  const end = `${last}${lastExtension}\r\n${trailers.map((line) => `${line}\r\n`).join('')}\r\n`
  return { bytes: Buffer.concat([...parts, latin1(end)]), body: Buffer.concat(chunks.map(({ data }) => data)) }
}

describe('a chunked body', () => {
  test('the body is the same however it is cut, and its end is found exactly', () => {
    fc.assert(
      fc.property(wholeBody, cuts, fc.uint8Array({ maxLength: 20 }), (made, places, surplus) => {
        const { bytes, body } = written(made)
        expect(decode(chunked, Buffer.concat([bytes, surplus]), places)).toEqual({
          body,
          taken: bytes.length,
          isOver: true,
        })
      }),
      { numRuns: 1_000 },
    )
  })

  test('the body is not over before its last byte', () => {
    fc.assert(
      fc.property(wholeBody, fc.nat(), cuts, (made, at, places) => {
        const { bytes, body } = written(made)
        const kept = bytes.subarray(0, at % bytes.length)
        const decoded = decode(chunked, kept, places)
        expect(decoded.isOver).toBe(false)
        expect(decoded.body).toEqual(body.subarray(0, decoded.body.length))
      }),
      { numRuns: 500 },
    )
  })

  test('a body that arrives byte by byte is decoded', () => {
    const bytes = latin1('5;a="b"\r\nhello\r\n00A\r\n, world!!!\r\n0;z\r\nx: y\r\n\r\n')
    const places = Array.from(bytes, (_, i) => i)
    expect(decode(chunked, bytes, places)).toEqual({
      body: Buffer.from('hello, world!!!'),
      taken: bytes.length,
      isOver: true,
    })
  })

  test('a large chunk is given as a view, and a read that holds only data is given as it came', () => {
    const given: Uint8Array[] = []
    const large = 'x'.repeat(0x1000)
    const bytes = latin1(`5\r\nhello\r\n1000\r\n${large}\r\n8\r\n`)
    const decoder = bodyDecoderFor(chunked)
    decoder.take(bytes, given)
    const whole = latin1('whole he')
    decoder.take(whole, given)
    expect(given.map((piece) => Buffer.from(piece).toString())).toEqual(['hello', large, 'whole he'])
    expect(given[1]?.buffer).toBe(bytes.buffer)
    expect(given[2]).toBe(whole)
  })

  test.each<[why: string, text: string]>([
    ['an empty size', '\r\nhello\r\n'],
    ['a letter that is not a hex digit', 'g\r\n'],
    ['a letter after digits', '5g\r\n'],
    ['a slash as the size', '/\r\n'],
    ['a backquote as the size', '`\r\n'],
    ['an at sign as the size', '@\r\n'],
    ['a control character as the size', '\x11\r\n'],
    ['a negative size', '-5\r\nhello\r\n'],
    ['a plus before the size', '+5\r\nhello\r\n'],
    ['a size written with 0x', '0x5\r\nhello\r\n'],
    ['a space before the size', ' 5\r\nhello\r\n'],
    ['a space in the size', '5 5\nhello\r\n'],
    ['an underscore in the size', '1_0\r\n'],
    ['a size with nine digits', '100000000\r\n'],
    ['a zero with nine digits', '000000000\r\n'],
    ['a size too large for a number', `${'f'.repeat(17)}\r\n`],
    ['an extension without a size', ';a=b\r\n'],
    ['a bare LF after the size', '5\nhello\r\n'],
    ['a bare CR after the size', '5\rhello\r\n'],
    ['a bare LF in an extension', '5;a\nhello\r\n'],
    ['a bare CR in an extension', '5;a\rb\r\nhello\r\n'],
    ['no line end after the data', '5\r\nhello0\r\n\r\n'],
    ['more data than its size', '5\r\nhello!\r\n0\r\n\r\n'],
    ['a bare LF after the data', '5\r\nhello\n0\r\n\r\n'],
    ['a bare CR after the data', '5\r\nhello\r0\r\n\r\n'],
    ['two line ends after the data', '5\r\nhello\r\n\r\n0\r\n\r\n'],
    ['a bare LF after the last size', '0\n\r\n'],
    ['a bare LF at the end', '0\r\n\n'],
    ['a bare CR at the end', '0\r\n\rx'],
    ['a bare LF in a trailer', '0\r\nx: y\nz: 1\r\n\r\n'],
    ['a bare CR in a trailer', '0\r\nx: y\rz: 1\r\n\r\n'],
    ['something else than an extension after a blank', '5 5\r\nhello\r\n0\r\n\r\n'],
    ['a control character in an extension', '5;a\0\r\nhello\r\n0\r\n\r\n'],
    ['a control character in a trailer', '0\r\nx: \0\r\n\r\n'],
    ['a trailer without a name', '0\r\n: y\r\n\r\n'],
    ['a trailer without a colon', '0\r\nx\r\n\r\n'],
    ['a folded trailer', '0\r\nx: y\r\n z\r\n\r\n'],
    ['an endless extension', `5;${'a'.repeat(17 * 1024)}`],
    ['an endless trailer', `0\r\nx: ${'a'.repeat(17 * 1024)}`],
    ['endless trailers', `0\r\n${'x: y\r\n'.repeat(5 * 1024)}`],
  ])('a body with %s is refused', (_why, text) => {
    const bytes = latin1(text)
    expect(() => decode(chunked, bytes)).toThrow(MalformedMessageError)
    expect(() =>
      decode(
        chunked,
        bytes,
        Array.from(bytes.subarray(0, 64), (_, i) => i),
      ),
    ).toThrow(MalformedMessageError)
  })

  test('thousands of chunks may each have an extension', () => {
    const one = `1;signature=${'a'.repeat(64)}\r\nx\r\n`
    const bytes = latin1(`${one.repeat(2_000)}0\r\n\r\n`)
    expect(decode(chunked, bytes)).toEqual({ body: latin1('x'.repeat(2_000)), taken: bytes.length, isOver: true })
  })

  test('blanks after a chunk size are accepted', () => {
    const bytes = latin1('5   \r\nhello\r\n0 \t\r\n\r\n')
    expect(decode(chunked, bytes)).toEqual({ body: Buffer.from('hello'), taken: bytes.length, isOver: true })
  })

  test('a chunk size of eight hex digits is accepted', () => {
    const bytes = latin1('ffffffff\r\nhello')
    expect(decode(chunked, bytes)).toEqual({ body: latin1('hello'), taken: bytes.length, isOver: false })
  })
})

describe('a body with a length or with another framing', () => {
  test('a body with a length ends exactly there, however it is cut', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 100 }),
        fc.uint8Array({ maxLength: 20 }),
        cuts,
        (body, surplus, places) => {
          const framing = { kind: 'length', bytes: body.length } as const
          const decoded = decode(framing, Buffer.concat([body, surplus]), places)
          expect(decoded).toEqual({ body: Buffer.from(body), taken: body.length, isOver: true })
        },
      ),
      { numRuns: 500 },
    )
  })

  test.each<[Framing, boolean]>([
    [{ kind: 'none' }, true],
    [{ kind: 'length', bytes: 0 }, true],
    [{ kind: 'length', bytes: 1 }, false],
    [chunked, false],
    [{ kind: 'until-close' }, false],
  ])('a body with the framing %j is over before it begins: %p', (framing, isOver) => {
    expect(bodyDecoderFor(framing).isOver).toBe(isOver)
  })

  test('no byte that follows a response without a body is taken', () => {
    expect(decode({ kind: 'none' }, latin1('HTTP/1.1 200 OK'))).toEqual({ body: latin1(''), taken: 0, isOver: true })
  })

  test('a body without a length is not over before the connection is', () => {
    const bytes = Buffer.alloc(100_000, 'a')
    const decoded = decode({ kind: 'until-close' }, bytes, [1, 70_000])
    expect(decoded).toEqual({ body: bytes, taken: bytes.length, isOver: false })
  })
})
