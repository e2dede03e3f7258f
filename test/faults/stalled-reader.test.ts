import { afterEach, describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { zeroNano } from '../../src/base/money.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'

let gateway: TestGateway | undefined
let socket: Socket | undefined
afterEach(async () => {
  socket?.destroy()
  await gateway?.close()
})

// More than all that lies between a vendor and a client that does not read.
const request = { model: 'gpt-5', stream: true, messages: [{ role: 'user', content: 'sandbox:tokens=60000' }] }

/** A client that reads until it has so much, and then no more. Gives what became of its socket. */
function visit(at: TestGateway, bytesMax: number) {
  const { port, hostname } = new URL(at.url)
  const body = JSON.stringify(request)
  const visitor = connect(Number(port), hostname)
  let read = 0
  let isClosed = false
  visitor.on('error', () => {})
  visitor.on('close', () => (isClosed = true))
  visitor.on('data', (bytes) => {
    read += bytes.length
    if (read > bytesMax) visitor.pause()
  })
  const head = [`POST /v1/chat/completions HTTP/1.1`, `host: ${hostname}:${port}`, `authorization: Bearer ${at.key}`]
  visitor.write([...head, 'content-type: application/json', `content-length: ${body.length}`, '', body].join('\r\n'))
  return { socket: visitor, read: () => read, isClosed: () => isClosed }
}

describe.each(['strict', 'leased'] as const)('%s: a client that stops reading its stream', (mode) => {
  test.each([
    ['for longer than it may', 'readerSeconds: 1'],
    ['when its time is up', 'totalSeconds: 2, readerSeconds: 600'],
  ])(
    '%s is gone: it pays for what it was sent, and its hold ends',
    async (_why, timeouts) => {
      gateway = await startTestGateway({ mode, yaml: `timeouts: { ${timeouts} }` })
      const before = await gateway.balance()
      const visitor = visit(gateway, 200_000)
      socket = visitor.socket
      await until(() => visitor.read() > 200_000)
      expect(gateway.openHolds()).toBe(1)
      const { openHolds } = gateway
      await until(() => openHolds() === 0)
      socket.resume() // to see that there is no end
      await until(() => visitor.isClosed())
      await gateway.assertBooks()
      const after = await gateway.balance()
      expect(after.held).toBe(zeroNano)
      expect(before.posted - after.posted).toBeGreaterThan(0n)
      const record = await gateway.store.db.selectFrom('request').select(['status', 'cost']).executeTakeFirstOrThrow()
      expect([record.status, String(record.cost)]).toEqual([499, String(before.posted - after.posted)])
    },
    30_000,
  )
})
