import { afterEach, expect, spyOn, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { handTimers } from '../../../test/support/hand-timers.ts'
import { answer } from '../../../test/support/vendor.ts'
import { noUnheardRejections, openTransport, startWire, type Wire } from '../../../test/support/wire.ts'
import { systemTimers } from '../../base/clock.ts'
import { Connection } from './connection.ts'
import { Incoming } from './incoming.ts'
import { writeRequest } from './request.ts'
import { targetOf } from './target.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'

noUnheardRejections()

let wire: Wire | undefined
afterEach(() => wire?.stop())

async function start(...habits: Parameters<typeof startWire>): Promise<Wire> {
  wire = await startWire(...habits)
  return wire
}

/** A connection, and how often it was freed. */
async function open({ url }: Wire) {
  const target = targetOf(url)
  let freed = 0
  const connection = await Connection.open(target, () => void freed++, handTimers())
  const asking = writeRequest({ url, headers: {} }, target)
  return { connection, asking, freed: () => freed }
}

test('a connection whose reader aborts at the last bytes is closed, not freed', async () => {
  const vendor = await start({ reply: ({ socket }) => void socket.write(answer(200, 'hello')) })
  const { connection, asking, freed } = await open(vendor)
  await new Promise<void>((end) => {
    const incoming = new Incoming(connection, {
      begin: () => incoming.pour({ take: () => incoming.abort(new Error('too much')) }),
      unanswered: () => end(),
      end: () => end(),
    })
    connection.ask(asking, incoming)
  })
  await vendor.lines[0]?.closed
  expect({ isClosed: connection.isClosed, freed: freed() }).toEqual({ isClosed: true, freed: 0 })
})

test('bytes that wait can be read after their connection was destroyed, which is not resumed', async () => {
  const body = 'x'.repeat(1_000_000)
  const vendor = await start({ reply: ({ socket }) => void socket.write(answer(200, body)) })
  const { connection, asking } = await open(vendor)
  const resume = spyOn(connection, 'resume')
  const paused = Promise.withResolvers<void>()
  const pause = spyOn(connection, 'pause').mockImplementation(() => paused.resolve())
  const ended = Promise.withResolvers<Error | undefined>()
  const incoming = new Incoming(connection, { begin() {}, unanswered: paused.reject, end: ended.resolve })
  connection.ask(asking, incoming)
  await paused.promise
  pause.mockRestore()
  connection.destroy(new Error('gone'))
  let bytes = 0
  incoming.pour({ take: (piece) => void (bytes += piece.length) })
  expect((await ended.promise)?.message).toBe('gone')
  expect(bytes).toBeGreaterThan(64 * 1024)
  expect(resume).toHaveBeenCalledTimes(1)
})

test('a destroyed connection does not keep the upload that it cut off in memory', async () => {
  const vendor = await start({ connected: ({ socket }) => void socket.pause() })
  const target = targetOf(vendor.url)
  const kept: Connection[] = []
  const uploads: WeakRef<ArrayBuffer>[] = []
  const cutOff = async () => {
    const connection = await Connection.open(target, () => {}, handTimers())
    const upload = new Uint8Array(32 * 1024 * 1024)
    uploads.push(new WeakRef(upload.buffer))
    connection.ask([upload], new Incoming(connection, { begin() {}, unanswered() {}, end() {} }))
    connection.destroy(new Error('the client left'))
    kept.push(connection)
  }
  const count = 8
  for (let at = 0; at < count; at++) await cutOff()
  // A collector that scans the stack may take one or two of them for used.
  const left = () => uploads.filter((upload) => upload.deref() !== undefined).length
  for (let tries = 0; tries < 50 && left() > count / 2; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    Bun.gc(true)
  }
  expect(left()).toBeLessThanOrEqual(count / 2)
  expect(kept.every(({ isClosed }) => isClosed)).toBe(true)
})

test('a large request is freed once it is written, unless parts of it may be sent again', async () => {
  const vendor = await start({ reply: ({ socket }) => void socket.write(answer(200, 'hello')) })
  const target = targetOf(vendor.url)
  const ask = async (pieces: readonly Uint8Array[]) => {
    const connection = await Connection.open(target, () => {}, handTimers())
    await new Promise<void>((begun, unanswered) => {
      connection.ask(pieces, new Incoming(connection, { begin: () => begun(), unanswered, end() {} }))
    })
    connection.destroy(new Error('it has answered'))
    return pieces.map(({ length }) => length)
  }
  const body = 'x'.repeat(500_000)
  const call = { url: vendor.url, headers: {} }
  expect(await ask(writeRequest({ ...call, body }, target))).toEqual([0])
  const [, sent] = await ask(writeRequest({ ...call, body: Buffer.from(body) }, target))
  expect(sent).toBe(body.length)
})

const source = (path: string) => JSON.stringify(join(import.meta.dir, path))

test('a process stays alive for a call over a connection that had been idle', async () => {
  const vendor = await start({
    reply: ({ socket, asked }) =>
      void setTimeout(() => socket.write(answer(200, `answer ${asked.length}`)), asked.length === 1 ? 0 : 200),
  })
  const program = join(temporaryFolder('connection'), 'ask.ts')
  writeFileSync(
    program,
    `import { systemClock } from ${source('../../base/clock.ts')}
     import { makeTransport } from ${source('../transport.ts')}
     const { send } = makeTransport(systemClock)
     const timeouts = { connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 60_000 }
     const ask = async () => {
       const sent = await send({ url: '${vendor.url}', headers: {} }, timeouts, new AbortController().signal, 'kept')
       return Buffer.from(await sent.exchange.readAll(1_000)).toString()
     }
     await ask()
     void ask().then((text) => process.stdout.write(text))`,
  )
  const child = Bun.spawn([process.execPath, program], { stdout: 'pipe', stderr: 'inherit' })
  expect(await new Response(child.stdout).text()).toBe('answer 2')
  expect(vendor.lines).toHaveLength(1)
}, 120_000)

/** Clients leave so many microtask turns after the socket opened; gives the numbers of those that were answered. */
async function answeredThoughGone(): Promise<number[]> {
  const vendor = await start({ reply: ({ socket }) => void socket.write(answer(200, 'hello')) })
  const after = spyOn(systemTimers, 'after')
  const answered: number[] = []
  try {
    // Enough turns to leave before, between and after everything that waits for the socket.
    for (let turns = 0; turns < 24; turns++) {
      const client = new AbortController()
      after.mockImplementation(() => () => inTurns(turns, () => client.abort()))
      const outcome = await openTransport().failure(vendor.url, { signal: client.signal, connection: 'new' })
      if (outcome.startsWith('answered')) answered.push(turns)
      else expect(outcome).toMatch(/^client-gone, (?:unsent|unknown)$/)
    }
  } finally {
    after.mockRestore()
  }
  return answered
}

function inTurns(count: number, run: () => void): void {
  if (count === 0) run()
  else queueMicrotask(() => inTurns(count - 1, run))
}

test('a client that leaves while its connection is handed over is not answered', async () => {
  expect(await answeredThoughGone()).toEqual([])
})
