import { describe, expect, test } from 'bun:test'
import { MalformedMessageError } from './malformed-message-error.ts'
import { readRequestHead, refuseBareLineFeeds, RefusedHeadError, withoutLineEnds } from './request-head.ts'

/** The head of a GET with these lines, without the empty line after it. */
const head = (...lines: string[]) => ['GET /a?b=c HTTP/1.1', 'Host: here', ...lines].join('\r\n')
const latin1 = (text: string) => Buffer.from(text, 'latin1')

const many = (count: number) => Array.from({ length: count - 1 }, (_, i) => `x-${i}: a`)

describe('a request head', () => {
  test('it is read', () => {
    const read = readRequestHead(head('X-A:  one\t', 'x-a:two', 'Content-Length: 007', 'X-B: \x80\xff', 'X-C:'))
    expect({ ...read, headers: [...read.headers] }).toEqual({
      method: 'GET',
      url: 'http://here/a?b=c',
      headers: [
        ['Host', 'here'],
        ['X-A', 'one'],
        ['x-a', 'two'],
        ['Content-Length', '007'],
        ['X-B', '\x80\xff'],
        ['X-C', ''],
      ],
      framing: { kind: 'length', bytes: 7 },
      keepsOpen: true,
      isOld: false,
      expectsContinue: false,
    })
    const { headers } = read
    expect([headers.count, headers.get('x-a'), headers.get('x-c'), headers.get('x-d')]).toEqual([
      6,
      'one, two',
      '',
      null,
    ])
    expect([headers.has('x-c'), headers.has('x-d'), headers.has('host')]).toEqual([true, false, true])
  })

  test('headers with another length are the same but for it', () => {
    const { headers } = readRequestHead(head('Content-Length: 7', 'x-content-length: 7'))
    const longer = headers.withLength('12')
    expect(longer.get('content-length')).toBe('12')
    expect(longer.get('x-content-length')).toBe('7')
    expect([...longer]).toEqual([
      ['Host', 'here'],
      ['Content-Length', '12'],
      ['x-content-length', '7'],
    ])
    expect(headers.get('content-length')).toBe('7')
  })

  test.each([
    ['GET / HTTP/1.1', 'GET', 'http:///'],
    ['M-SEARCH /a HTTP/1.1', 'M-SEARCH', 'http:///a'],
    ['get //b/../c HTTP/1.0', 'get', 'http:////b/../c'],
    ['POST /;,%00"\'|`{}[]\\#?? HTTP/1.1', 'POST', 'http:///;,%00"\'|`{}[]\\#??'],
  ])('a first line is taken as it is: %s', (line, method, url) => {
    expect(readRequestHead(line)).toMatchObject({ method, url })
  })

  test.each<[lines: string[], framing: object]>([
    [[], { kind: 'none' }],
    [['Content-Length: 0'], { kind: 'length', bytes: 0 }],
    [['Content-Length: 999999999999999'], { kind: 'length', bytes: 999_999_999_999_999 }],
    [['Transfer-Encoding: Chunked'], { kind: 'chunked' }],
    [['X-Content-Length: 5', 'X-Transfer-Encoding: chunked'], { kind: 'none' }],
  ])('with %j it has the framing %j', (lines, framing) => {
    expect(readRequestHead(head(...lines)).framing).toEqual(framing as never)
  })

  test.each<[lines: string[], old: boolean, keepsOpen: boolean]>([
    [[], false, true],
    [[], true, false],
    [['Connection: keep-alive'], true, true],
    [['Connection: Keep-Alive, TE'], true, true],
    [['Connection: TE', 'Connection: keep-alive'], true, true],
    [['Connection: keep-alive, close'], true, false],
    [['Connection: keep-alive x'], true, false],
    [['Connection: close'], false, false],
    [['Connection: ,x ,\tCLOSE'], false, false],
    [['Connection: x', 'Connection: close'], false, false],
    [['Connection: closed'], false, true],
    [['Connection: Upgrade', 'Upgrade: h2c'], false, true],
    [['Proxy-Connection: close'], false, true],
  ])('with %j, in HTTP/1.0: %j, it keeps the connection open: %j', (lines, old, keepsOpen) => {
    const text = old ? head(...lines).replace('HTTP/1.1', 'HTTP/1.0') : head(...lines)
    expect(readRequestHead(text)).toMatchObject({ keepsOpen, isOld: old })
  })

  test('only a client that speaks HTTP/1.1 waits for permission', () => {
    const text = head('Expect: 100-Continue')
    expect(readRequestHead(text).expectsContinue).toBe(true)
    expect(readRequestHead(text.replace('HTTP/1.1', 'HTTP/1.0')).expectsContinue).toBe(false)
  })

  test.each<[what: string, text: string]>([
    ['no target', 'GET HTTP/1.1'],
    ['no version', 'GET /'],
    ['an empty line', ''],
    ['another version', 'GET / HTTP/1.2'],
    ['version 2.0', 'GET / HTTP/2.0'],
    ['a version in lower case', 'GET / http/1.1'],
    ['a version with a blank after it', 'GET / HTTP/1.1 '],
    ['a blank before the method', ' GET / HTTP/1.1'],
    ['two blanks', 'GET  / HTTP/1.1'],
    ['two blanks before the version', 'GET /  HTTP/1.1'],
    ['tabs', 'GET\t/\tHTTP/1.1'],
    ['a blank in the target', 'GET /a b HTTP/1.1'],
    ['a control character in the target', 'GET /\0 HTTP/1.1'],
    ['a character beyond ASCII in the target', 'GET /\xe4 HTTP/1.1'],
    ['an absolute target', 'GET http://here/ HTTP/1.1'],
    ['a target without a slash', 'GET here HTTP/1.1'],
    ['an asterisk', 'OPTIONS * HTTP/1.1'],
    ['a tunnel', 'CONNECT here:443 HTTP/1.1'],
    ['a method with a colon', 'G:T / HTTP/1.1'],
    ['an endless method', `${'G'.repeat(33)} / HTTP/1.1`],
    ['a beginning of HTTP/2', 'PRI * HTTP/2.0'],
    ['a header without a colon', head('Host')],
    ['a header without a name', head(': a')],
    ['a header whose name has a blank', head('X A: a')],
    ['a blank before a colon', head('Content-Length : 5')],
    ['a folded header', head('X: a', ' b')],
    ['a header that is folded by a tab', head('X: a', '\tb')],
    ['a blank line of blanks', head(' ')],
    ['a name beyond ASCII', head('\xc4: a')],
    ['a NUL in a value', head('X: a\0b')],
    ['a DEL in a value', head('X: a\x7fb')],
    ['a bare LF in a value', head('X: a\nContent-Length: 5')],
    ['a bare CR in a value', head('X: a\rContent-Length: 5')],
    ['a CR at the end of a value', head('X: a\r')],
    ['an empty length', head('Content-Length:')],
    ['a signed length', head('Content-Length: +5')],
    ['a negative length', head('Content-Length: -5')],
    ['a length with a fraction', head('Content-Length: 5.0')],
    ['a length in hex', head('Content-Length: 0x5')],
    ['a length with an exponent', head('Content-Length: 5e1')],
    ['a length with an underscore', head('Content-Length: 5_0')],
    ['a length with a blank', head('Content-Length: 5 0')],
    ['a list of lengths', head('Content-Length: 5, 5')],
    ['two equal lengths', head('Content-Length: 5', 'content-length: 5')],
    ['two lengths', head('Content-Length: 5', 'Content-Length: 6')],
    ['a length of sixteen digits', head('Content-Length: 1000000000000000')],
    ['a length in other digits', head('Content-Length: \xb2')],
    ['a length after a no-break space', head('Content-Length: \xa05')],
    ['an unknown encoding', head('Transfer-Encoding: xchunked')],
    ['an empty encoding', head('Transfer-Encoding:')],
    ['no encoding', head('Transfer-Encoding: identity')],
    ['chunks and then another encoding', head('Transfer-Encoding: chunked, identity')],
    ['another encoding and then chunks', head('Transfer-Encoding: gzip, chunked')],
    ['chunks twice', head('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')],
    ['chunks with a parameter', head('Transfer-Encoding: chunked;a=b')],
    ['chunks after a vertical tab', head('Transfer-Encoding: \x0bchunked')],
    ['chunks and a length', head('Transfer-Encoding: chunked', 'Content-Length: 5')],
    ['a length and chunks', head('Content-Length: 0', 'Transfer-Encoding: chunked')],
    ['chunks in HTTP/1.0', head('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0')],
  ])('%s is malformed', (_what, text) => {
    expect(() => readRequestHead(text)).toThrow(MalformedMessageError)
    expect(() => readRequestHead(text)).not.toThrow(RefusedHeadError)
  })

  test.each<[what: string, text: string, status: number]>([
    ['more than two hundred headers', head(...many(201)), 431],
    ['an expectation that nobody knows', head('Expect: 200-ok'), 417],
    ['two expectations', head('Expect: 100-continue', 'Expect: 100-continue'), 417],
    ['an empty expectation', head('Expect:'), 417],
  ])('%s is refused', (_what, text, status) => {
    expect(() => readRequestHead(text)).toThrow(expect.objectContaining({ status, name: 'RefusedHeadError' }))
  })

  test('two hundred headers are read', () => {
    expect(readRequestHead(head(...many(200))).headers.count).toBe(200)
  })
})

test.each([
  ['\r\n\r\nGET', 'GET'],
  ['GET\r\n', 'GET\r\n'],
  ['\r\n', ''],
  ['\r\n\r', '\r'],
  ['\r', '\r'],
  ['\n', '\n'],
  ['', ''],
])('of %j, what follows empty lines is %j', (text, rest) => {
  expect(Buffer.from(withoutLineEnds(latin1(text))).toString('latin1')).toBe(rest)
})

test.each([
  ['GET / HTTP/1.1\r\nx: a\r', true],
  ['a\r\n\r\n', true],
  ['', true],
  ['\n', false],
  ['a\nb', false],
  ['a\r\nb\n', false],
  ['a\r\n\n', false],
])('in %j every line feed ends a line: %j', (text, isSo) => {
  const check = () => refuseBareLineFeeds(latin1(text))
  if (isSo) check()
  else expect(check).toThrow(MalformedMessageError)
})
