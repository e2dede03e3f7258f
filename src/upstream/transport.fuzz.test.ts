import { afterAll, beforeAll, expect, test } from 'bun:test'
import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { movableClock } from '../../test/support/movable-clock.ts'
import { chunk } from '../../test/support/vendor.ts'
import { noUnheardRejections, openTransport, startWire, type Line, type Wire } from '../../test/support/wire.ts'
import { GatewayError } from '../base/errors.ts'
import type { Exchange } from './transport.ts'

noUnheardRejections()

/** What a vendor does with a call, and what a client does with its answer. */
type Story = {
  readonly framing: 'length' | 'chunks' | 'until-close'
  readonly bodyBytes: number
  readonly uploadBytes: number
  readonly interims: number
  /** Where one write of the vendor ends and the next begins. */
  readonly cuts: readonly number[]
  readonly end: 'whole' | 'says-close' | 'closes' | 'resets' | 'is-silent' | 'says-more' | 'is-garbled'
  /** After which share of its bytes the vendor ends like that. */
  readonly at: number
  readonly client: 'reads' | 'reads-late' | 'finishes' | 'ends' | 'leaves-early' | 'leaves' | 'is-left'
}

const often = <const T>(value: T, weight: number) => ({ arbitrary: fc.constant(value), weight })
const bytes = fc.oneof({ arbitrary: fc.nat(300), weight: 8 }, { arbitrary: fc.nat(200_000), weight: 1 })
// Always less than the whole.
const share = fc.nat(999).map((thousandths) => thousandths / 1_000)
const story: fc.Arbitrary<Story> = fc.record({
  framing: fc.constantFrom('length', 'chunks', 'until-close'),
  bodyBytes: bytes,
  uploadBytes: bytes,
  interims: fc.oneof(often(0, 5), often(1, 1), often(3, 1)),
  cuts: fc.array(share, { maxLength: 5 }),
  end: fc.oneof(
    often('whole', 20),
    often('says-close', 3),
    often('closes', 3),
    often('resets', 3),
    often('is-silent', 1),
    often('says-more', 2),
    often('is-garbled', 2),
  ),
  at: share,
  client: fc.oneof(
    often('reads', 12),
    often('reads-late', 4),
    often('finishes', 2),
    often('ends', 2),
    often('leaves-early', 1),
    often('leaves', 1),
    often('is-left', 1),
  ),
})
const rounds = fc.array(fc.array(story, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 3 })

const stories = new Map<string, Story>()
const clock = movableClock()
// A call that takes longer hangs for good: even a busy machine is quicker.
const endsWithinMs = 30_000
let calls = 0
let wire: Wire

beforeAll(async () => {
  wire = await startWire({ reply: (line, { path, body }) => tell(line, path, body.length) })
})
afterAll(() => wire.stop())

/** A body unlike that of any other call, in all its parts. */
function bodyOf(path: string, { bodyBytes }: Story): Buffer {
  return Buffer.alloc(bodyBytes, `${path} `)
}

function writtenBy(path: string, told: Story): Buffer {
  const { framing, interims, end } = told
  const body = bodyOf(path, told)
  const pieces: Buffer[] = [Buffer.from('HTTP/1.1 102 Processing\r\n\r\n'.repeat(interims))]
  const closing = end === 'says-close' ? 'connection: close\r\n' : ''
  if (framing === 'length') {
    pieces.push(Buffer.from(`HTTP/1.1 200 OK\r\n${closing}content-length: ${body.length}\r\n\r\n`), body)
  } else if (framing === 'until-close') {
    pieces.push(Buffer.from(`HTTP/1.1 200 OK\r\n${closing}\r\n`), body)
  } else {
    pieces.push(Buffer.from(`HTTP/1.1 200 OK\r\n${closing}transfer-encoding: chunked\r\n\r\n`))
    const half = body.length >> 1
    for (const part of [body.subarray(0, half), body.subarray(half)]) if (part.length > 0) pieces.push(chunk(part))
    pieces.push(Buffer.from('0\r\n\r\n'))
  }
  if (end === 'says-more' && framing !== 'until-close') pieces.push(Buffer.from('HTTP/1.1'))
  return Buffer.concat(pieces)
}

function tell({ socket }: Line, path: string, uploaded: number): void {
  const told = stories.get(path)
  if (told === undefined || told.uploadBytes !== uploaded) throw new Error(`nobody asked for ${path}`)
  const { end, at, cuts, framing } = told
  const all = writtenBy(path, told)
  const isWhole = end === 'whole' || end === 'says-close' || end === 'says-more'
  const stop = isWhole ? all.length : Math.floor(all.length * at)
  const places = [0, ...cuts.map((cut) => Math.floor(stop * cut)).toSorted((a, b) => a - b), stop]
  const write = (i: number) => {
    if (i < places.length)
      return void socket.write(all.subarray(places[i - 1], places[i]), () => setImmediate(write, i + 1))
    if (end === 'resets') socket.resetAndDestroy()
    else if (end === 'is-garbled') socket.end('\0\n\r\r\n\r\n')
    else if (end === 'is-silent') return
    else if (end === 'closes' || end === 'says-close' || framing === 'until-close') socket.end()
  }
  write(1)
}

type Transport = ReturnType<typeof openTransport>
type Came = { readonly bytes: Buffer; readonly isWhole: boolean; readonly error?: unknown }

async function make(transport: Transport, path: string, told: Story): Promise<Came> {
  const client = new AbortController()
  if (told.client === 'is-left') client.abort()
  const sending = transport.send(wire.url + path, { signal: client.signal, body: Buffer.alloc(told.uploadBytes) })
  if (told.client === 'leaves-early') setImmediate(() => client.abort())
  const sent = await sending
  const came = sent.kind === 'failed' ? failed(sent.error) : await take(sent.exchange, told, client)
  if (came.isWhole || came.error !== undefined) expect(getEventListeners(client.signal, 'abort')).toEqual([])
  return came
}

function failed(error: unknown, pieces: Uint8Array[] = []): Came {
  return { bytes: Buffer.concat(pieces), isWhole: false, error }
}

async function take(exchange: Exchange, { client }: Story, leaving: AbortController): Promise<Came> {
  const pieces: Uint8Array[] = []
  try {
    for (;;) {
      if (client === 'reads-late') await new Promise((resolve) => setImmediate(resolve))
      const piece = await exchange.read()
      if (piece === undefined) return { bytes: Buffer.concat(pieces), isWhole: true }
      pieces.push(piece)
      if (client === 'leaves') leaving.abort()
      if (client === 'finishes') exchange.finish()
      if (client === 'ends') exchange.abort()
      if (client === 'finishes' || client === 'ends') return { bytes: Buffer.concat(pieces), isWhole: false }
    }
  } catch (error) {
    return failed(error, pieces)
  }
}

test('every call ends, and none gets the answer to another call', async () => {
  await fc.assert(
    fc.asyncProperty(rounds, async (all) => {
      const isCalm = all.flat().every((told) => !troublesOthers(told))
      const transport = openTransport(clock)
      for (const round of all) await makeAtOnce(transport, round, isCalm)
    }),
    { numRuns: 200, endOnFailure: true },
  )
}, 120_000)

/** A silent vendor makes hours pass for all calls. Extra or garbled bytes may spoil a connection for the next call. */
function troublesOthers({ end, framing }: Story): boolean {
  return end === 'is-silent' || end === 'says-more' || (end === 'is-garbled' && framing === 'length')
}

async function makeAtOnce(transport: Transport, round: readonly Story[], isCalm: boolean): Promise<void> {
  const paths = round.map((told) => {
    const path = `/${calls++}`
    stories.set(path, told)
    return path
  })
  const tooLate = Promise.withResolvers<never>()
  const timer = setTimeout(() => tooLate.reject(new Error('a call did not end')), endsWithinMs)
  const hours = setInterval(() => round.some(({ end }) => end === 'is-silent') && clock.advance(3_600_000), 20)
  const made = round.map((told, i) => make(transport, paths[i] ?? '', told))
  const cames = await Promise.race([Promise.all(made), tooLate.promise])
  clearTimeout(timer)
  clearInterval(hours)
  for (const [i, told] of round.entries()) check(paths[i] ?? '', told, cames[i], isCalm)
}

function check(path: string, told: Story, came: Came | undefined, isCalm: boolean): void {
  if (came === undefined) throw new Error('nothing came of it')
  const body = bodyOf(path, told)
  // What came is a beginning of this call's own body. Garbled bytes may come as a part of it, and begin with a zero.
  const garbledAt = told.end === 'is-garbled' ? came.bytes.indexOf(0) : -1
  const own = garbledAt === -1 ? came.bytes : came.bytes.subarray(0, garbledAt)
  expect(own.equals(body.subarray(0, own.length))).toBe(true)
  if (came.error !== undefined) expect(came.error).toBeInstanceOf(GatewayError)
  const isCut = told.framing === 'until-close' && told.end === 'closes'
  if (came.isWhole && !isCut && told.end !== 'is-garbled') expect(came.bytes.length).toBe(body.length)
  const isPlain = (told.end === 'whole' || told.end === 'says-close') && told.client.startsWith('reads')
  if (isCalm && isPlain) expect([path, came.error, came.isWhole]).toEqual([path, undefined, true])
}
