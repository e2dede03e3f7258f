import { afterAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { closeAll, listen, openClient, until } from '../../../test/support/http-server.ts'
import type { PushedBody, Sink } from './pushed-body.ts'
import { Reply } from './reply.ts'

afterAll(closeAll)

const mebibyte = 1024 * 1024
const pieceBytes = 64 * 1024
const uploadBytes = 50 * mebibyte

/** Bytes that are different everywhere, so that none can be lost or doubled unseen. */
function pieceAt(index: number): Buffer {
  const piece = Buffer.alloc(pieceBytes)
  for (let at = 0; at < pieceBytes; at += 4) piece.writeUInt32LE(index * pieceBytes + at, at)
  return piece
}

const digestOfAll = (() => {
  const hash = createHash('sha256')
  for (let i = 0; i < uploadBytes / pieceBytes; i++) hash.update(pieceAt(i))
  return hash.digest('hex')
})()

test.each(['length', 'chunked'] as const)(
  'an upload of fifty megabytes arrives whole, no faster than it is read: %s',
  async (framing) => {
    let read = 0
    let mayRead = false
    const { port } = listen({
      async answer({ body }) {
        const hash = createHash('sha256')
        const reader = body?.getReader()
        for (;;) {
          await until(() => mayRead)
          const { done, value } = (await reader?.read()) ?? { done: true }
          if (done || value === undefined) return new Reply(200, {}, Buffer.from(hash.digest('hex')))
          hash.update(value)
          read += value.length
        }
      },
    })
    const size = framing === 'length' ? `content-length: ${uploadBytes}` : 'transfer-encoding: chunked'
    const client = openClient(port, `POST / HTTP/1.1\r\nhost: a\r\n${size}\r\n\r\n`)
    let written = 0
    const upload = async () => {
      for (let i = 0; i < uploadBytes / pieceBytes; i++) {
        const piece = pieceAt(i)
        const all =
          framing === 'length'
            ? [piece]
            : [Buffer.from(`${pieceBytes.toString(16)};a=b\r\n`), piece, Buffer.from('\r\n')]
        for (const one of all) await new Promise<void>((resolve) => client.socket.write(one, () => resolve()))
        written += piece.length
      }
      if (framing === 'chunked') client.socket.write('0\r\n\r\n')
    }
    const uploaded = upload()
    // Nobody reads: what is written stays within what the system keeps for both ends.
    for (let before = -1; before !== written; await Bun.sleep(100)) before = written
    expect(read).toBe(0)
    expect(written).toBeLessThan(uploadBytes / 2)
    mayRead = true
    await uploaded
    await until(() => client.text().endsWith(digestOfAll))
    expect(read).toBe(uploadBytes)
    client.socket.write('GET /next HTTP/1.1\r\nhost: a\r\n\r\n')
    await until(() => client.statuses().length === 2)
  },
  30_000,
)

/** A body that writes pieces for as long as there is room, and notes how many wait at most. */
function source(pieces: number) {
  let sink: Sink | undefined
  const sent = { pieces: 0, refusals: 0 }
  const pump = () => {
    while (sent.pieces < pieces) {
      const hasRoom = sink?.write(pieceAt(sent.pieces)) === true
      sent.pieces++
      if (!hasRoom) {
        sent.refusals++
        return
      }
    }
    sink?.end()
  }
  const body: PushedBody = {
    begin(into) {
      sink = into
      pump()
    },
    drained: pump,
    left() {},
  }
  return { body, sent }
}

test('a stream of fifty megabytes is written no faster than its client reads, and arrives whole', async () => {
  const { body, sent } = source(uploadBytes / pieceBytes)
  const { port } = listen({ answer: () => new Reply(200, {}, body) })
  const client = openClient(port, 'GET / HTTP/1.0\r\nhost: a\r\n\r\n')
  client.socket.pause()
  for (let before = -1; before !== sent.pieces || sent.pieces === 0; await Bun.sleep(100)) before = sent.pieces
  expect(sent.pieces * pieceBytes).toBeLessThan(uploadBytes / 2)
  client.socket.resume()
  await until(client.isClosed)
  expect(sent.refusals).toBeGreaterThan(1)
  const text = client.text()
  const all = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1')
  expect(createHash('sha256').update(all).digest('hex')).toBe(digestOfAll)
})

test('a stream whose client is behind goes on after requests that have come meanwhile', async () => {
  const pieces = 400
  const { body } = source(pieces)
  let isFirst = true
  const { port } = listen({
    answer() {
      if (!isFirst) return new Reply(200, {}, Buffer.from('second'))
      isFirst = false
      return new Reply(200, {}, body)
    },
  })
  const get = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'
  const client = openClient(port, get)
  client.socket.pause()
  await until(() => !isFirst)
  client.socket.write(get.repeat(5_000)) // more than may wait
  await Bun.sleep(50)
  client.socket.resume()
  await until(() => client.statuses().length === 5_001)
  expect(client.text().length).toBeGreaterThan(pieces * pieceBytes)
})
