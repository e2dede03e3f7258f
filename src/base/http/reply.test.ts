import { describe, expect, setSystemTime, test } from 'bun:test'
import { asResponse, emptyReply, jsonReply, Reply, writeHead, type Delimiting } from './reply.ts'

const linesOf = (head: string) => head.split('\r\n').filter((line) => !line.startsWith('date: '))

describe('the head of a response', () => {
  test.each<[Delimiting, 'close' | 'keep-alive' | undefined, string[]]>([
    [0, undefined, ['content-length: 0']],
    [12, 'close', ['content-length: 12', 'connection: close']],
    ['chunked', 'keep-alive', ['transfer-encoding: chunked', 'connection: keep-alive']],
    ['until-close', 'close', ['connection: close']],
    ['none', undefined, []],
  ])('delimited by %j, with the connection %j', (delimiting, connection, lines) => {
    const head = writeHead(200, { 'x-a': 'b' }, delimiting, connection)
    expect(linesOf(head)).toEqual(['HTTP/1.1 200 OK', 'x-a: b', ...lines, '', ''])
  })

  test.each([
    [204, 'No Content'],
    [429, 'Too Many Requests'],
    [599, 'Unknown'],
  ])('the status %j is named %s', (status, name) => {
    expect(writeHead(status, {}, 'none', undefined)).toStartWith(`HTTP/1.1 ${status} ${name}\r\n`)
  })

  test('framing headers, and the date, are not those of a reply', () => {
    const headers = { connection: 'close', 'content-length': '1', 'transfer-encoding': 'chunked', date: 'today' }
    expect(linesOf(writeHead(200, headers, 5, undefined))).toEqual(['HTTP/1.1 200 OK', 'content-length: 5', '', ''])
  })

  test.each(['a\r\nb: c', 'a\nb', 'a\rb', 'a\0', '\x1b[2J', '\x7f', '\u0100', '\u{1f600}'])(
    'a value that could end its line, or is not a byte per character, is refused: %j',
    (value) => {
      expect(() => writeHead(200, { 'x-a': value }, 0, undefined)).toThrow('x-a')
    },
  )

  test.each(['', 'a b', 'a:', 'a\r\nb', '\u00e4', '\u0100'])('a name that is no token is refused: %j', (name) => {
    expect(() => writeHead(200, { [name]: 'a' }, 0, undefined)).toThrow('no header may have')
  })

  test('a value may have blanks, tabs and bytes beyond ASCII', () => {
    expect(writeHead(200, { 'x-a': 'a \tb\x80\xff' }, 0, undefined)).toContain('\r\nx-a: a \tb\x80\xff\r\n')
  })

  test('the date is that of the second', () => {
    try {
      for (const time of ['2026-03-01T12:00:00.000Z', '2026-03-01T12:00:00.999Z', '2026-03-01T12:00:01.000Z']) {
        setSystemTime(new Date(time))
        expect(writeHead(200, {}, 0, undefined)).toContain(`\r\ndate: ${new Date(time).toUTCString()}\r\n`)
      }
    } finally {
      setSystemTime()
    }
  })
})

describe('a reply', () => {
  test('its headers can be read and changed, and are its own', () => {
    const given = { vary: 'Accept' }
    const reply = emptyReply(204, given)
    reply.headers.append('vary', 'Origin')
    reply.headers.append('x-a', 'one')
    reply.headers.set('x-b', 'two')
    expect(reply.headers.all).toEqual({ vary: 'Accept, Origin', 'x-a': 'one', 'x-b': 'two' })
    expect([reply.headers.get('x-a'), reply.headers.get('x-c')]).toEqual(['one', null])
    expect(given).toEqual({ vary: 'Accept' })
  })

  test('a document says that it is JSON, unless it is told otherwise', async () => {
    const reply = jsonReply({ a: 'ä' }, { status: 201, headers: { 'x-a': 'b' } })
    expect(reply.headers.all).toEqual({ 'content-type': 'application/json', 'x-a': 'b' })
    const response = asResponse(reply)
    expect([response.status, await response.json()]).toEqual([201, { a: 'ä' }])
    expect(jsonReply({}, { headers: { 'content-type': 'text/plain' } }).headers.get('content-type')).toBe('text/plain')
  })

  test('a pushed one can be read in this process', async () => {
    const reply = new Reply(
      200,
      {},
      {
        begin(sink) {
          sink.write(Buffer.from('one'))
          sink.write(Buffer.from('two'))
          sink.end()
        },
        drained() {},
        left() {},
      },
    )
    expect(await asResponse(reply).text()).toBe('onetwo')
  })

  test('a response of the web stays what it is', () => {
    const response = new Response('a')
    expect(asResponse(response)).toBe(response)
  })
})
