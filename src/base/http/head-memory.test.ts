import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { HeadMemory } from './head-memory.ts'
import { readRequestHead, type RequestHead } from './request-head.ts'

const latin1 = (text: string) => Buffer.from(text, 'latin1')

/** What a memory knows that was given this head. */
function remembering(head: string): HeadMemory {
  const memory = new HeadMemory()
  memory.remember(latin1(head), head.length, readRequestHead(head.slice(0, -4)))
  return memory
}

const seen = (head: RequestHead) => ({
  ...head,
  headers: [...head.headers],
  length: head.headers.get('content-length'),
})

const value = fc.string({
  unit: fc.constantFrom(' ', '\t', 'a', '0', '7', ':', ',', '\x80', '\xff'),
  maxLength: 12,
})
const nameLike = fc.constantFrom('x', 'x-content-length', 'content-length2', 'content-lengt', 'y', 'accept')
const other = fc.oneof(
  fc.tuple(nameLike, value).map(([name, text]) => `${name}: ${text}`),
  fc.constantFrom('x: content-length: 5', 'x:\tContent-Length:5', 'connection: close', 'x-length: 12'),
)
const spelling = fc.constantFrom('Content-Length: ', 'content-length:', 'CONTENT-LENGTH:\t ')
const length = fc.oneof(fc.nat(30).map(String), fc.constantFrom('999999999999999', '100', '05', '0'))
const parts = fc.record({
  line: fc.constantFrom('POST /v1/chat HTTP/1.1', 'POST /content-length:5 HTTP/1.1', 'GET / HTTP/1.0'),
  before: fc.array(other, { maxLength: 3 }),
  spelling,
  length,
  after: fc.array(other, { maxLength: 3 }),
  trailing: fc.constantFrom('', '', ' ', '\t'),
})
type Parts = typeof parts extends fc.Arbitrary<infer T> ? T : never

function written(made: Parts, bytes = made.length): string {
  const { line, before, after, trailing } = made
  const lines = [line, 'host: a', ...before, `${made.spelling}${bytes}${trailing}`, ...after]
  return `${lines.join('\r\n')}\r\n\r\n`
}

const body = fc.string({ unit: fc.constantFrom('0', '9', '\r', '\n', 'a'), maxLength: 6 })

const measured = (bytes: string) => `POST / HTTP/1.1\r\ncontent-length: ${bytes}\r\n\r\n`

describe('a head that comes again', () => {
  test('it is recalled as it would be read, whatever the length of its body', () => {
    let recalled = 0
    fc.assert(
      fc.property(parts, length, body, (made, otherLength, rest) => {
        const memory = remembering(written(made))
        const again = written(made, otherLength)
        const head = memory.recall(latin1(again + rest))
        if (head === undefined) return
        recalled++
        expect(memory.end).toBe(again.length)
        expect(seen(head)).toEqual(seen(readRequestHead(again.slice(0, -4))))
      }),
      { numRuns: 2_000 },
    )
    expect(recalled).toBeGreaterThan(500) // the others have a length that is not remembered
  })

  test('it is not recalled where any other byte differs, or is missing', () => {
    const change = fc.record({ at: fc.nat(), byte: fc.nat(255), how: fc.constantFrom('other', 'more', 'less') })
    fc.assert(
      fc.property(parts, change, body, (made, { at, byte, how }, rest) => {
        const head = written(made)
        const place = at % head.length
        const inserted = how === 'less' ? '' : String.fromCharCode(byte)
        const changed = head.slice(0, place) + inserted + head.slice(how === 'more' ? place : place + 1) + rest
        const memory = remembering(head)
        const recalled = memory.recall(latin1(changed))
        if (recalled === undefined) return
        // Only where the change left the head alone, or was one of its body's length.
        const end = changed.indexOf('\r\n\r\n') + 4
        expect(memory.end).toBe(end)
        expect(seen(recalled)).toEqual(seen(readRequestHead(changed.slice(0, end - 4))))
        expect(changed.slice(0, end).replace(/^(content-length:[ \t]*)\d+/im, '$1')).toBe(
          head.replace(/^(content-length:[ \t]*)\d+/im, '$1'),
        )
      }),
      { numRuns: 3_000 },
    )
  })

  test('one of which a part is missing is not recalled', () => {
    const head = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 12\r\nx: y\r\n\r\n'
    const memory = remembering(head)
    for (let end = 0; end < head.length; end++) expect(memory.recall(latin1(head.slice(0, end)))).toBeUndefined()
    expect(memory.recall(latin1(head))).toBeDefined()
  })

  test('a chain of lengths is recalled each time as it came', () => {
    const memory = remembering(measured('5'))
    for (const bytes of ['7', '1234', '5', '0', '999999999999999']) {
      expect(memory.recall(latin1(measured(bytes)))?.framing).toEqual({ kind: 'length', bytes: Number(bytes) })
      expect(memory.recall(latin1(measured(bytes)))?.headers.get('content-length')).toBe(bytes)
    }
    for (const bytes of ['', '-1', '+1', '1 1', '01', '00', '1000000000000000', ' 5', '5 ', '5, 5', '5\r\nx: y']) {
      expect(memory.recall(latin1(measured(bytes)))).toBeUndefined()
    }
  })

  test('digits of its body are not those of a length', () => {
    for (const head of ['GET / HTTP/1.1\r\n\r\n', 'POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n']) {
      const memory = remembering(head)
      expect(memory.recall(latin1(`${head}123\r\n`))?.framing).toEqual(readRequestHead(head.slice(0, -4)).framing)
      expect(memory.end).toBe(head.length)
    }
  })
})

test('what was remembered is a copy of its own', () => {
  const head = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'
  const packet = Buffer.concat([latin1(head), Buffer.alloc(100)])
  const memory = new HeadMemory()
  memory.remember(packet, head.length, readRequestHead(head.slice(0, -4)))
  packet.fill(0)
  expect(memory.recall(latin1(head))).toBeDefined()
})

test('a head of many kilobytes is not remembered', () => {
  const head = `GET / HTTP/1.1\r\nx: ${'a'.repeat(5_000)}\r\n\r\n`
  expect(remembering(head).recall(latin1(head))).toBeUndefined()
})

test('nothing is recalled where nothing came before', () => {
  expect(new HeadMemory().recall(latin1('GET / HTTP/1.1\r\n\r\n'))).toBeUndefined()
})
