import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { answer, chunk, lastChunk, streamHead } from '../../test/support/vendor.ts'
import { noUnheardRejections, openTransport, startWire, textOf, type Wire } from '../../test/support/wire.ts'
import type { Outlet } from '../base/pour.ts'
import type { Exchange } from './transport.ts'

noUnheardRejections()

let wire: Wire
let another: Wire
let transport: ReturnType<typeof openTransport>
beforeEach(async () => {
  wire = await startWire({
    reply(line, { path }, index) {
      line.socket.write(path === '/again' ? answer(200, `over ${index}`) : streamHead)
    },
  })
  another = await startWire({ reply: ({ socket }) => void socket.write(answer(200, 'later')) })
  transport = openTransport()
})
afterEach(async () => {
  await wire.stop()
  await another.stop()
})

const write = (...pieces: (string | Uint8Array)[]) => {
  for (const piece of pieces) wire.lines[0]?.socket.write(piece)
}

/** Resolves when what was written has arrived: an exchange that begins later, over any connection, arrives later. */
async function arrived(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) expect(await openTransport().text(another.url)).toBe('later')
}

/** Notes all that it is given, and calls `withFirst` at the first piece. */
function pouring(exchange: Exchange, withFirst: (outlet: Outlet) => void = () => {}) {
  const noted: string[] = []
  const { promise: ended, resolve: end } = Promise.withResolvers<string>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const outlet: Outlet = {
    take(bytes) {
      noted.push(Buffer.from(bytes).toString())
      if (noted.length > 1) return
      withFirst(outlet)
      begin()
    },
    end(failure) {
      noted.push(failure?.kind ?? 'end')
      end(noted.join(' '))
    },
  }
  exchange.pour(outlet)
  return { noted, outlet, begun, ended }
}

/** Two chunks in one read of the socket. */
const both = Buffer.concat([chunk('a'), chunk('b')])

describe('pouring a response', () => {
  test('pieces are given as they come, followed by the end', async () => {
    const { begun, ended } = pouring(await transport.open(wire.url))
    write(chunk('a'))
    await begun
    write(chunk('b'), lastChunk)
    expect(await ended).toBe('a b end')
    expect(await transport.text(`${wire.url}/again`)).toBe('over 0')
  })

  test('bytes that came before the pour are given as one piece', async () => {
    const exchange = await transport.open(wire.url)
    write(both, lastChunk)
    await arrived()
    expect(await pouring(exchange).ended).toBe('ab end')
  })

  test('a pause stops the pour at once, and the next pour continues from there', async () => {
    const exchange = await transport.open(wire.url)
    const { noted, outlet, begun, ended } = pouring(exchange, () => exchange.pause())
    write(both)
    await begun
    write(chunk('c'), lastChunk)
    await arrived()
    expect(noted).toEqual(['a'])
    exchange.pour(outlet)
    expect(await ended).toBe('a bc end')
  })

  test('a second outlet gets everything from the moment it is set', async () => {
    const exchange = await transport.open(wire.url)
    const { promise: ended, resolve: end } = Promise.withResolvers<string>()
    const { noted } = pouring(exchange, () => void pouring(exchange).ended.then(end))
    write(both, lastChunk)
    expect(await ended).toBe('b end')
    expect(noted).toEqual(['a'])
  })

  test('a connection that the vendor cuts ends the pour with upstream-failed', async () => {
    const { begun, ended } = pouring(await transport.open(wire.url))
    write(chunk('a'))
    await begun
    wire.lines[0]?.socket.destroy()
    expect(await ended).toBe('a upstream-failed')
  })

  test('an abort while what came before the pour is given tells the end once', async () => {
    const exchange = await transport.open(wire.url)
    write(both)
    await arrived()
    const { noted, ended } = pouring(exchange, () => exchange.abort())
    expect(await ended).toBe('ab client-gone')
    await wire.lines[0]?.closed
    expect(noted).toEqual(['ab', 'client-gone'])
  })

  test('an abort ends the pour with client-gone, and nothing more of the same read is given', async () => {
    const exchange = await transport.open(wire.url)
    const { noted, ended } = pouring(exchange, () => exchange.abort())
    write(both, lastChunk)
    expect(await ended).toBe('a client-gone')
    await wire.lines[0]?.closed
    expect(noted).toEqual(['a', 'client-gone'])
    const late = pouring(exchange)
    expect(await late.ended).toBe('client-gone')
  })

  test('an abort ends the pour with client-gone even when the whole response has arrived', async () => {
    const exchange = await transport.open(wire.url)
    write(both, lastChunk)
    await arrived()
    const { ended } = pouring(exchange, () => exchange.abort())
    expect(await ended).toBe('ab client-gone')
  })

  test('after finish the rest is discarded, and the connection is used again', async () => {
    const exchange = await transport.open(wire.url)
    const { noted, begun } = pouring(exchange, () => exchange.finish())
    write(both)
    await begun
    write(lastChunk)
    await arrived()
    expect(noted).toEqual(['a'])
    expect(await transport.text(`${wire.url}/again`)).toBe('over 0')
  })

  test('after finish a rest without an end is cut off, and the connection is closed', async () => {
    const exchange = await transport.open(wire.url)
    const { begun } = pouring(exchange, () => exchange.finish())
    write(chunk('a'))
    await begun
    for (let i = 0; i < 10; i++) {
      write(chunk('b'))
      await Bun.sleep(2)
    }
    await wire.lines[0]?.closed
    expect(await transport.text(`${wire.url}/again`)).toBe('over 1')
  })
})

const nextPiece = async (exchange: Exchange) => Buffer.from((await exchange.read()) ?? '').toString()

test('reading the whole response continues after the piece that was read before', async () => {
  const exchange = await transport.open(wire.url)
  write(both)
  const first = await nextPiece(exchange)
  write(chunk('c'), lastChunk)
  expect(first).toStartWith('a')
  expect(first + (await textOf(exchange))).toBe('abc')
})

test('a piece that was read is not poured, and one that was poured is not read', async () => {
  const read = await transport.open(wire.url)
  write(both)
  await arrived()
  expect(await nextPiece(read)).toBe('ab')
  const { ended } = pouring(read)
  write(chunk('c'), lastChunk)
  expect(await ended).toBe('c end')
  const poured = await transport.open(wire.url)
  const { noted: before, begun } = pouring(poured, () => poured.pause())
  write(both)
  await begun
  write(chunk('c'), lastChunk)
  expect([...before, await textOf(poured)]).toEqual(['a', 'bc'])
})
