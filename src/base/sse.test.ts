import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { restOf } from '../../test/support/rest-of.ts'
import { dataOf, EventSplitter } from './sse.ts'

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** The events that come out when the bytes are pushed in chunks, cut at these places. */
function split(bytes: Uint8Array, cuts: readonly number[] = []): { events: string[]; rest: string } {
  const splitter = new EventSplitter(1_000_000)
  const events: string[] = []
  let start = 0
  for (const cut of [...cuts, bytes.length]) {
    for (const event of splitter.push(bytes.subarray(start, cut))) events.push(text(event))
    start = cut
  }
  return { events, rest: restOf(splitter) }
}

const everyByte = (bytes: Uint8Array) => Array.from({ length: bytes.length }, (_, index) => index)

describe('events of a stream', () => {
  test.each([
    ['line feeds', 'data: a\n\ndata: b\n\n', ['data: a\n\n', 'data: b\n\n']],
    ['CR LF', 'data: a\r\n\r\ndata: b\r\n\r\n', ['data: a\r\n\r\n', 'data: b\r\n\r\n']],
    ['carriage returns', 'data: a\r\rdata: b\r\r', ['data: a\r\r', 'data: b\r\r']],
    ['mixed line ends', 'data: a\r\n\ndata: b\n\r\ndata: c\n\n', ['data: a\r\n\n', 'data: b\n\r\n', 'data: c\n\n']],
    ['events of several lines', 'event: x\ndata: a\ndata: b\n\n', ['event: x\ndata: a\ndata: b\n\n']],
    ['comments', ': ping\n\ndata: a\n\n', [': ping\n\n', 'data: a\n\n']],
    ['blank lines between events', '\n\n\ndata: a\n\n\n\ndata: b\n\n', ['data: a\n\n', 'data: b\n\n']],
    ['carriage returns before line feeds', 'data: a\r\rdata: b\n\n', ['data: a\r\r', 'data: b\n\n']],
    ['CR LF before line feeds', 'data: a\r\n\r\ndata: b\n\n', ['data: a\r\n\r\n', 'data: b\n\n']],
    ['a line feed before an event', '\ndata: a\n\n', ['data: a\n\n']],
    ['no space after the colon', 'data:a\n\n', ['data:a\n\n']],
    ['characters beyond ASCII', 'data: 日本 👩‍👩‍👧\n\ndata: é\n\n', ['data: 日本 👩‍👩‍👧\n\n', 'data: é\n\n']],
  ])('events are found whole, in one chunk or byte by byte: %s', (_name, stream, events) => {
    const bytes = Buffer.from(stream)
    expect(split(bytes)).toEqual({ events, rest: '' })
    expect(split(bytes, everyByte(bytes))).toEqual({ events, rest: '' })
  })

  test('an incomplete event is kept back', () => {
    expect(split(Buffer.from('data: a\n\ndata: b\n'))).toEqual({ events: ['data: a\n\n'], rest: 'data: b\n' })
    expect(split(Buffer.from('data: a'))).toEqual({ events: [], rest: 'data: a' })
    expect(split(new Uint8Array())).toEqual({ events: [], rest: '' })
  })

  test('a CR LF that is cut in two counts as one line end', () => {
    const bytes = Buffer.from('data: a\r\n\r\ndata: b\r\n\r\n')
    for (const cut of everyByte(bytes)) {
      expect(split(bytes, [cut]).events).toEqual(['data: a\r\n\r\n', 'data: b\r\n\r\n'])
    }
  })

  test('an event larger than the limit is refused', () => {
    const splitter = new EventSplitter(100)
    expect(splitter.push(Buffer.from('x'.repeat(100)))).toEqual([])
    expect(() => splitter.push(Buffer.from('x'))).toThrow('more than 100 bytes')
  })

  test('large events come out whole and stay unchanged afterwards', () => {
    const large = Array.from({ length: 5 }, (_, index) => `data: ${String(index).repeat(200_000)}\n\n`)
    for (const piece of [10_007, 65_536, 150_001]) {
      const bytes = Buffer.from(large.join('data: small\n\n'))
      const splitter = new EventSplitter(1_000_000)
      const kept: Uint8Array[] = []
      for (let at = 0; at < bytes.length; at += piece) kept.push(...splitter.push(bytes.subarray(at, at + piece)))
      expect(kept.map(text).filter((event) => event !== 'data: small\n\n')).toEqual(large)
      expect(restOf(splitter)).toBe('')
    }
  })

  test.each([
    ['event: x\ndata: a\n\n', true],
    ['data: a\n\ndata: b\n\n', false],
    ['data: a\n\n\n', false],
    ['\ndata: a\n\n', false],
    ['data: a\r\rdata: b\n\n', false],
    ['data: a\n', false],
    ['\n\n', false],
    ['\n', false],
    ['', false],
  ])('%j is one whole event: %p', (chunk, isWhole) => {
    expect(new EventSplitter(100).isWhole(Buffer.from(chunk))).toBe(isWhole)
  })

  test('a chunk that ends an event begun before is not a whole one', () => {
    const splitter = new EventSplitter(100)
    splitter.push(Buffer.from('data: b\n'))
    expect(splitter.isWhole(Buffer.from('data: c\n\n'))).toBe(false)
    expect(splitter.push(Buffer.from('data: c\n\n')).map(text)).toEqual(['data: b\ndata: c\n\n'])
    expect(splitter.isWhole(Buffer.from('data: c\n\n'))).toBe(true)
  })

  test('many small events in one chunk are not refused', () => {
    expect(new EventSplitter(100).push(Buffer.from('data: a\n\n'.repeat(100)))).toHaveLength(100)
  })
})

// Each stream has one style of line end, as every real sender has: in a mixed one, a lone CR at a cut is ambiguous.
const styles = ['\n', '\r\n', '\r'] as const
const streams = fc
  .record({
    style: fc.constantFrom(...styles),
    events: fc.array(
      fc.array(fc.constantFrom('data: a', 'data:', 'data: {"x":"日本"}', ': ping', 'event: x', 'id', '👩‍👧'), {
        minLength: 1,
        maxLength: 4,
      }),
      { maxLength: 8 },
    ),
    tail: fc.constantFrom('', 'data: cut'),
  })
  .map(({ style, events, tail }) =>
    Buffer.from(events.map((of) => `${of.join(style)}${style}${style}`).join('') + tail),
  )

test('the same events come out however the stream is cut into chunks', () => {
  fc.assert(
    fc.property(streams, fc.array(fc.nat(400)), (bytes, places) => {
      const cuts = places.filter((place) => place <= bytes.length).toSorted((a, b) => a - b)
      expect(split(bytes, cuts)).toEqual(split(bytes))
      expect(split(bytes, everyByte(bytes))).toEqual(split(bytes))
    }),
  )
})

test('a chunk that is taken for one whole event is split into just that', () => {
  fc.assert(
    fc.property(streams, fc.nat(400), fc.nat(400), (bytes, from, to) => {
      const chunk = bytes.subarray(Math.min(from, to), Math.max(from, to))
      const splitter = new EventSplitter(1_000_000)
      if (splitter.isWhole(chunk)) expect([splitter.push(chunk), restOf(splitter)]).toEqual([[chunk], ''])
    }),
    { numRuns: 2_000 },
  )
})

test('the events and the rest are exactly the bytes of the stream', () => {
  fc.assert(
    fc.property(streams, (bytes) => {
      const { events, rest } = split(bytes)
      expect(events.join('') + rest).toBe(text(bytes))
    }),
  )
})

describe('the data of an event', () => {
  test.each([
    ['data: a\n\n', 'a'],
    ['data:a\n\n', 'a'],
    ['data:  a\n\n', ' a'],
    ['data: a\ndata: b\n\n', 'a\nb'],
    ['data: a\r\ndata:b\r\n\r\n', 'a\nb'],
    ['event: x\nid: 1\ndata: a\n: note\n\n', 'a'],
    [': only a note\n\n', ''],
    ['data\n\n', ''],
    ['data:\n\n', ''],
    ['data:\ndata:\n\n', '\n'],
    ['database: a\n\n', ''],
  ])('the data is read from %j', (event, data) => {
    expect(dataOf(Buffer.from(event))).toBe(data)
  })
})
