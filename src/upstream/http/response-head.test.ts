import { describe, expect, test } from 'bun:test'
import { leastMs } from '../../../test/support/least-ms.ts'
import type { Framing } from '../../base/http/body-decoder.ts'
import { MalformedMessageError } from '../../base/http/malformed-message-error.ts'
import { readHead } from './response-head.ts'

const ok = 'HTTP/1.1 200 OK'
const until = { kind: 'until-close' } as const
const none = { kind: 'none' } as const
const chunked = { kind: 'chunked' } as const
const length = (bytes: number) => ({ kind: 'length', bytes }) as const

describe('where a body ends, and whether the connection can be used after it', () => {
  test.each<[lines: string[], framing: Framing, keepsOpen: boolean]>([
    [[ok, 'content-length: 5'], length(5), true],
    [[ok, 'CONTENT-LENGTH:5'], length(5), true],
    [[ok, 'content-length: \t 5 \t'], length(5), true],
    [[ok, 'content-length: 0'], length(0), true],
    [[ok, 'content-length: 007'], length(7), true],
    [[ok, 'transfer-encoding: chunked'], chunked, true],
    [[ok, 'Transfer-Encoding: Chunked'], chunked, true],
    [[ok], until, false],
    [['HTTP/1.1 200'], until, false],
    [['HTTP/1.1 200 '], until, false],
    [['HTTP/1.1 500 Not \xe9 Word', 'content-length: 1'], length(1), true],
    [['HTTP/1.1 204 No Content'], none, true],
    [['HTTP/1.1 304 Not Modified'], none, true],
    [['HTTP/1.1 100 Continue'], none, true],
    [['HTTP/1.1 103 Early Hints', 'link: </a>'], none, true],
    // The vendor says that it closes the connection.
    [[ok, 'content-length: 5', 'connection: close'], length(5), false],
    [[ok, 'content-length: 5', 'Connection: Keep-Alive, CLOSE'], length(5), false],
    [[ok, 'content-length: 5', 'connection: keep-alive', 'connection: close'], length(5), false],
    [[ok, 'content-length: 5', 'connection: keep-alive'], length(5), true],
    [['HTTP/1.0 200 OK', 'content-length: 5'], length(5), false],
    [['HTTP/1.0 200 OK', 'content-length: 5', 'connection: keep-alive'], length(5), false],
    [['HTTP/1.0 200 OK'], until, false],
    // Other readers would understand these differently, so nothing that follows on the connection can be trusted.
    [[ok, 'transfer-encoding: chunked', 'content-length: 5'], chunked, false],
    [[ok, 'content-length: 5', 'transfer-encoding: chunked'], chunked, false],
    [['HTTP/1.1 204 No Content', 'transfer-encoding: chunked'], none, false],
    [['HTTP/1.1 204 No Content', 'content-length: 5'], none, false],
    [['HTTP/1.1 204 No Content', 'content-length: 0'], none, true],
    [['HTTP/1.1 304 Not Modified', 'content-length: 5'], none, false],
  ])('the framing and the reuse of the connection are read from %j', (lines, framing, keepsOpen) => {
    const head = readHead(lines.join('\r\n'))
    expect({ framing: head.framing, keepsOpen: head.keepsOpen }).toEqual({ framing, keepsOpen })
  })
})

describe('a malformed head', () => {
  test.each<[why: string, text: string]>([
    ['an empty head', ''],
    ['an empty line first', `\r\n${ok}`],
    ['another protocol', 'SSH-2.0-OpenSSH_9.6'],
    ['HTTP/2', 'HTTP/2 200 OK'],
    ['a later minor version', 'HTTP/1.2 200 OK'],
    ['a protocol in lower case', 'http/1.1 200 OK'],
    ['a leading space', ` ${ok}`],
    ['two spaces before the status', 'HTTP/1.1  200 OK'],
    ['a tab before the status', 'HTTP/1.1\t200 OK'],
    ['no status', 'HTTP/1.1 OK'],
    ['a status of two digits', 'HTTP/1.1 20 OK'],
    ['a status of four digits', 'HTTP/1.1 2000 OK'],
    ['a status below 100', 'HTTP/1.1 099 No'],
    ['a status above 599', 'HTTP/1.1 600 No'],
    ['a negative status', 'HTTP/1.1 -20 No'],
    ['a bare LF in the first line', `${ok}\ncontent-length: 5`],
    ['a bare CR in the first line', `${ok}\rcontent-length: 5`],
    ['a NUL in the first line', `${ok}\0`],
    ['a bare LF in a value', `${ok}\r\nx: y\ncontent-length: 5`],
    ['a bare CR in a value', `${ok}\r\nx: y\rcontent-length: 5`],
    ['a bare LF at the start of a line', `${ok}\r\n\ncontent-length: 5`],
    ['a bare CR before a line end', `${ok}\r\nx: y\r\r\nz: 1`],
    ['a NUL in a value', `${ok}\r\nx: y\0z`],
    ['a folded line', `${ok}\r\nx: y\r\n z`],
    ['a line folded with a tab', `${ok}\r\nx: y\r\n\tz: 1`],
    ['a folded first line', `${ok}\r\n x: y`],
    ['a space before the colon', `${ok}\r\ncontent-length : 5`],
    ['a tab before the colon', `${ok}\r\ntransfer-encoding\t: chunked`],
    ['no colon', `${ok}\r\nx`],
    ['no name', `${ok}\r\n: x`],
    ['a space in a name', `${ok}\r\nx y: z`],
    ['a name that is not ASCII', `${ok}\r\nx\xe9: z`],
    ['two lengths', `${ok}\r\ncontent-length: 5\r\ncontent-length: 6`],
    ['one length twice', `${ok}\r\ncontent-length: 5\r\ncontent-length: 5`],
    ['lengths in a list', `${ok}\r\ncontent-length: 5, 5`],
    ['an empty length', `${ok}\r\ncontent-length:`],
    ['a length with a plus', `${ok}\r\ncontent-length: +5`],
    ['a negative length', `${ok}\r\ncontent-length: -5`],
    ['a length with a point', `${ok}\r\ncontent-length: 5.0`],
    ['a length with an exponent', `${ok}\r\ncontent-length: 5e1`],
    ['a length in hex', `${ok}\r\ncontent-length: 0x5`],
    ['a length too large for a number', `${ok}\r\ncontent-length: 9007199254740993`],
    ['a length after a vertical tab', `${ok}\r\ncontent-length: \v5`],
    ['a length after a no-break space', `${ok}\r\ncontent-length: \xa05`],
    ['a length with a byte order mark', `${ok}\r\ncontent-length: \xef\xbb\xbf5`],
    ['another transfer encoding', `${ok}\r\ntransfer-encoding: gzip`],
    ['a second transfer encoding', `${ok}\r\ntransfer-encoding: gzip, chunked`],
    ['chunked not as the last encoding', `${ok}\r\ntransfer-encoding: chunked, gzip`],
    ['chunked twice', `${ok}\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked`],
    ['the transfer encoding identity', `${ok}\r\ntransfer-encoding: identity`],
    ['an empty transfer encoding', `${ok}\r\ntransfer-encoding:`],
    ['a quoted transfer encoding', `${ok}\r\ntransfer-encoding: "chunked"`],
    ['chunked with a parameter', `${ok}\r\ntransfer-encoding: chunked;q=1`],
    ['chunked after a vertical tab', `${ok}\r\ntransfer-encoding: \vchunked`],
  ])('a head is refused: %s', (_why, text) => {
    expect(() => readHead(text)).toThrow(MalformedMessageError)
  })
})

test('headers are found by their lower-case name, and repeated headers are joined', () => {
  const { status, headers } = readHead(
    ['HTTP/1.1 429 Slow', 'X-A: one', 'Retry-After:3', 'x-a:  two ', 'x-empty:', 'x-url: a:b'].join('\r\n'),
  )
  expect(status).toBe(429)
  const names = ['x-a', 'retry-after', 'x-empty', 'x-url', 'x', 'x-', 'retry-afte', 'retry-after:3']
  expect(names.map((name) => headers.get(name))).toEqual(['one, two', '3', '', 'a:b', ...Array(4).fill(undefined)])
  expect(names.map((name) => headers.has(name))).toEqual([true, true, true, true, false, false, false, false])
})

test('a header named like a property of every object is an ordinary header', () => {
  const { headers } = readHead([ok, '__proto__: a', 'constructor: b'].join('\r\n'))
  expect([headers.get('__proto__'), headers.get('constructor'), headers.get('tostring')]).toEqual(['a', 'b', undefined])
})

test('sixty-four kilobytes of headers are read in linear time', () => {
  const lines = Array.from({ length: 8_000 }, (_, i) => `x${i}: y`)
  const spaces = `x:${' '.repeat(60_000)}y`
  const read = () => {
    expect(readHead([ok, ...lines].join('\r\n')).headers.get('x7999')).toBe('y')
    expect(readHead([ok, spaces].join('\r\n')).headers.get('x')).toBe('y')
  }
  // Reading in quadratic time would take more than a second for either.
  expect(leastMs(read, 250)).toBeLessThan(250)
})
