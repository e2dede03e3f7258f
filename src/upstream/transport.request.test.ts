import { afterEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { answer } from '../../test/support/vendor.ts'
import {
  noUnheardRejections,
  openTransport,
  startWire,
  textOf,
  type Asking,
  type Wire,
} from '../../test/support/wire.ts'

noUnheardRejections()

let wire: Wire
afterEach(() => wire.stop())

/** What a vendor gets of a call. */
async function asked(path: string, asking: Asking) {
  wire = await startWire({ reply: ({ socket }) => void socket.write(answer(200, 'ok')) })
  expect(await openTransport().text(`${wire.url}${path}`, asking)).toBe('ok')
  const [request] = wire.lines[0]?.asked ?? []
  if (request === undefined) throw new Error('nobody asked')
  const [first = '', ...rest] = request.head.split('\r\n')
  const headers = new Headers()
  for (const line of rest) headers.append(line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim())
  return { first, headers, host: new URL(wire.url).host, ...request }
}

describe('a request on the wire', () => {
  test("a request has its call's path, headers and body, our user agent, and accepts no compression", async () => {
    const { first, headers, host, body } = await asked('/v1/chat?a=b%20c#part', {
      headers: { authorization: 'Bearer k', 'content-type': 'application/json' },
      body: '{"text":"é ☃ 😀"}',
    })
    expect(first).toBe('POST /v1/chat?a=b%20c HTTP/1.1')
    expect(Object.fromEntries(headers)).toEqual({
      host,
      'user-agent': 'turnpike',
      accept: '*/*',
      'accept-encoding': 'identity',
      authorization: 'Bearer k',
      'content-type': 'application/json',
      'content-length': '22',
    })
    expect(body.toString()).toBe('{"text":"é ☃ 😀"}')
  })

  test.each<[Asking, line: string, length: string | null]>([
    [{ method: 'GET' }, 'GET /x HTTP/1.1', null],
    [{ method: 'DELETE' }, 'DELETE /x HTTP/1.1', '0'],
    [{ method: 'POST' }, 'POST /x HTTP/1.1', '0'],
    [{}, 'POST /x HTTP/1.1', '0'],
    [{ body: '' }, 'POST /x HTTP/1.1', '0'],
    [{ body: new Uint8Array() }, 'POST /x HTTP/1.1', '0'],
    [{ body: 'half of a character: \ud83d' }, 'POST /x HTTP/1.1', '24'],
    [{ body: Buffer.from([0, 13, 10, 255]) }, 'POST /x HTTP/1.1', '4'],
  ])('a call with %j is sent as %s with content-length %s', async (asking, line, length) => {
    const { first, headers } = await asked('/x', asking)
    expect([first, headers.get('content-length')]).toEqual([line, length])
  })

  test('the bytes of a body and of a Latin-1 header are kept', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
    expect((await asked('/', { body: bytes })).body).toEqual(Buffer.from(bytes))
    await wire.stop()
    for (const body of ['☃', bytes, undefined]) {
      const { head, headers } = await asked('/', {
        headers: { 'x-name': 'caf\xe9' },
        ...(body !== undefined && { body }),
      })
      expect(head).toContain('x-name: caf\xe9\r\n')
      expect(headers.get('content-length')).toBe(body === undefined ? '0' : body === '☃' ? '3' : '256')
      await wire.stop()
    }
  })
})

describe('the characters of a header', () => {
  const values = [
    'a\r\nx: y',
    'a\nb',
    'a\rb',
    '\r\n\r\nGET / HTTP/1.1',
    'a\0',
    '\x7f',
    '\x1b[0m',
    '☃',
    'a\u{1f600}',
    '\u010a',
  ]
  const names = ['a\r\nx', 'a:b', 'a b', '', 'a\0', 'é', 'a\n', ' a', 'a ']
  const headers = [...values.map((value) => ({ authorization: value })), ...names.map((name) => ({ [name]: 'v' }))]

  test.each(headers)('a call with the invalid header %j is not sent', async (bad) => {
    wire = await startWire({ reply: ({ socket }) => void socket.write(answer(200, 'ok')) })
    const transport = openTransport()
    const form = [{ field: 'a', value: 'b' }]
    for (const body of ['text', form, new Uint8Array(3)]) {
      expect(await transport.failure(wire.url, { headers: bad, body })).toBe('upstream-failed, unsent')
    }
    expect(wire.lines.length).toBe(0)
  })

  test('a tab and Latin-1 letters in a value are sent', async () => {
    const { head } = await asked('/', { headers: { a: 'b\tc \xff' } })
    expect(head).toContain('\r\na: b\tc \xff')
  })
})

test('spaces, line breaks and control characters in a path are encoded or removed', async () => {
  const { first } = await asked('/a b\r\nx: y/\u2603?q=\n\0 z', {})
  expect(first).toBe('POST /a%20bx:%20y/%E2%98%83?q=%00%20z HTTP/1.1')
})

describe('a form', () => {
  test('a form arrives with its fields, files, content type and length', async () => {
    const image = Uint8Array.from({ length: 300_000 }, (_, i) => i * 7)
    const empty = { name: 'empty.bin', mediaType: 'application/octet-stream', bytes: new Uint8Array() }
    const form = [
      { field: 'prompt', value: 'a "quoted" snowman ☃\r\nin two lines' },
      { field: 'image[]', value: { name: 'ä "b".png', mediaType: 'image/png', bytes: image } },
      { field: 'image[]', value: empty },
    ]
    const { headers, body } = await asked('/', { body: form, headers: { authorization: 'Bearer k' } })
    expect(headers.get('authorization')).toBe('Bearer k')
    expect(headers.get('content-length')).toBe(String(body.length))
    const type = headers.get('content-type') ?? ''
    expect(type).toMatch(/^multipart\/form-data; ?boundary=/)
    const read = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
    expect(read.get('prompt')).toBe('a "quoted" snowman ☃\r\nin two lines')
    const [first, second] = read.getAll('image[]') as unknown as File[]
    expect(new Uint8Array((await first?.arrayBuffer()) ?? new ArrayBuffer())).toEqual(image)
    expect([first?.type, second?.size]).toEqual(['image/png', 0])
  })

  test('the content type of a form replaces that of the call', async () => {
    const form = [{ field: 'a', value: 'b' }]
    const { headers } = await asked('/', { body: form, headers: { 'content-type': 'application/json' } })
    expect(headers.get('content-type')).toMatch(/^multipart\/form-data; ?boundary=[^,]+$/)
  })
})

describe('an upload of eight megabytes', () => {
  const upload = Buffer.alloc(8 * 1024 * 1024)
  for (let i = 0; i < upload.length; i += 4) upload.writeUInt32LE(i, i)
  const digest = createHash('sha256').update(upload).digest('hex')

  /** Reads a little at a time, and rests after each for some turns of the loop. */
  async function startSlow(): Promise<void> {
    wire = await startWire({
      connected({ socket, received }) {
        const hash = createHash('sha256')
        let headBytes = 0
        socket.on('data', (bytes: Buffer) => {
          const body = headBytes === 0 ? bytes.subarray((headBytes = bytes.indexOf('\r\n\r\n') + 4)) : bytes
          hash.update(body)
          if (received() === headBytes + upload.length) socket.write(answer(200, hash.digest('hex')))
          socket.pause()
          setTimeout(() => socket.resume(), 1)
        })
      },
    })
  }

  test('the upload arrives whole at a vendor that reads slowly', async () => {
    await startSlow()
    const transport = openTransport()
    expect(await transport.text(wire.url, { body: upload })).toBe(digest)
    expect(await transport.text(wire.url, { body: upload, connection: 'new' })).toBe(digest)
  })

  test('an upload that the vendor cuts off fails with unknown delivery', async () => {
    wire = await startWire({
      connected: ({ socket, received }) =>
        void socket.on('data', () => received() > 1_000_000 && socket.resetAndDestroy()),
    })
    expect(await openTransport().failure(wire.url, { body: upload })).toBe('upstream-failed, unknown')
  })

  test('the upload stops when the client leaves', async () => {
    wire = await startWire({ connected: ({ socket }) => void socket.once('data', () => socket.pause()) })
    const client = new AbortController()
    const failed = openTransport().failure(wire.url, { body: upload, signal: client.signal })
    const line = await wire.line(0)
    await new Promise((resolve) => line.socket.once('data', resolve))
    client.abort()
    expect(await failed).toBe('client-gone, unknown')
    line.socket.resume()
    await line.closed
    expect(line.received()).toBeLessThan(upload.length)
  })

  test('a refusal that comes before the whole upload has arrived is read', async () => {
    wire = await startWire({
      connected({ socket }) {
        socket.once('data', () => {
          socket.pause()
          // Like a server that reads no further: closing with unread bytes sends a reset.
          socket.write(answer(413, 'too large', { connection: 'close' }), () => socket.destroy())
        })
      },
    })
    const exchange = await openTransport().open(wire.url, { body: upload })
    expect([exchange.status, await textOf(exchange)]).toEqual([413, 'too large'])
  })
})
