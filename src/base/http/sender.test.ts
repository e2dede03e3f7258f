import { expect, test } from 'bun:test'
import type { Bytes } from '../spliced.ts'
import { chunkOf } from './chunk.ts'
import type { Exchange } from './exchange.ts'
import { Reply } from './reply.ts'
import { readRequestHead } from './request-head.ts'
import { Sender } from './sender.ts'

/** A sender over a connection that notes what is written, and what an exchange is told. */
function open(method = 'GET') {
  const state = { isCarried: true }
  const sent: string[] = []
  const told: string[] = []
  const exchange = {
    method,
    head: readRequestHead(`${method} / HTTP/1.1\r\nhost: a`),
    content: { isOver: true },
    letGo: (bytes?: number) => void told.push(`let go of ${bytes}`),
  } as unknown as Exchange
  const write = (bytes: Uint8Array) => sent.push(Buffer.from(bytes).toString('latin1')) > 0
  const connection = {
    carries: () => state.isCarried,
    write,
    writeChunk: (bytes: Bytes) => write(chunkOf(bytes)),
    finish: () => void told.push('finished'),
    cut: () => void told.push('cut'),
    terminate: () => void told.push('terminated'),
  }
  return {
    sender: new Sender(connection, { isStopping: false, mistaken() {} }),
    exchange,
    state,
    sent: () => sent.join(''),
    told,
  }
}

const turn = () => new Promise(setImmediate)

test('an answer whose length is known is let go of with that length before it is sent', async () => {
  const whole = open()
  whole.sender.send(whole.exchange, new Reply(200, {}, Buffer.from('12345')))
  expect(whole.told).toEqual(['let go of 5', 'finished'])
  const head = open('HEAD')
  head.sender.send(head.exchange, new Reply(200, {}, Buffer.from('12345')))
  expect(head.told).toEqual(['let go of 0', 'finished'])
  const file = open()
  file.sender.send(file.exchange, new Response(new Blob(['12345']).stream(), { headers: { 'content-length': '5' } }))
  expect(file.told).toEqual(['let go of 5'])
  const stream = open()
  stream.sender.send(stream.exchange, new Response(new ReadableStream()))
  expect(stream.told).toEqual([])
})

test('the body of a response of the web is cancelled if its client has left', () => {
  const { sender, exchange, state, sent } = open()
  state.isCarried = false
  let cancels = 0
  sender.send(exchange, new Response(new ReadableStream({ cancel: () => void cancels++ })))
  expect([cancels, sent()]).toEqual([1, ''])
})

test('a document is not sent if its client leaves while it is read', async () => {
  const { sender, exchange, state, sent, told } = open()
  const { readable, writable } = new TransformStream<Uint8Array>()
  sender.send(exchange, new Response(readable, { headers: { 'content-type': 'application/json' } }))
  const writer = writable.getWriter()
  await writer.write(Buffer.from('{}'))
  state.isCarried = false
  await writer.close()
  await turn()
  expect([sent(), told]).toEqual(['', []])
})
