import { expect, test } from 'bun:test'
import { World } from '../../../test/simulation/world.ts'
import { Deadlines } from '../deadlines.ts'
import type { ClientConnection } from './client-connection.ts'
import { Exchange } from './exchange.ts'
import { readRequestHead } from './request-head.ts'

const lookMs = 65_000 / 4

/** An exchange over a connection that notes what it is told, to a client that reads a byte between two looks. */
function open(...headers: readonly string[]) {
  const world = new World(1)
  const told: string[] = []
  const state = { isCarried: true, unread: 1_000_000 }
  const connection = {
    idleSeconds: 65,
    watching: { deadlines: new Deadlines(world.clock, world), clock: world.clock, idleSeconds: 65 },
    carries: () => state.isCarried,
    allow: (seconds: number) => void told.push(`allow ${seconds}`),
    pause: () => void told.push('pause'),
    resume: () => void told.push('resume'),
    permit: () => void told.push('permit'),
    unreadBytes: () => Promise.resolve(state.unread--),
  } as unknown as ClientConnection
  const exchange = new Exchange(readRequestHead(['POST / HTTP/1.1', 'host: a', ...headers].join('\r\n')), connection)
  /** What the connection is told in this time. */
  const heard = async (ms: number) => {
    world.run(world.now + ms)
    await Bun.sleep(0)
    return told.splice(0)
  }
  return { exchange, state, heard }
}

test('a long answer gets the time of an idle connection again and again, until it is sent', async () => {
  const { exchange, state, heard } = open()
  exchange.letGo(16 * 1024 + 1)
  expect(await heard(0)).toEqual(['allow 65', 'allow 65'])
  expect(await heard(1_000)).toEqual(['allow 65'])
  expect(await heard(lookMs)).toEqual(['allow 65'])
  state.isCarried = false
  expect(await heard(lookMs)).toEqual([])
  state.isCarried = true // whatever the connection carries by then
  expect(await heard(2 * lookMs)).toEqual([])
})

test('an answer that the system takes at once is not watched', async () => {
  const { exchange, heard } = open()
  exchange.letGo(16 * 1024)
  expect(await heard(0)).toEqual(['allow 65'])
  expect(await heard(2 * lookMs)).toEqual([])
})

test('a response that others watch may be quiet for ever, from when they begin to when they let go', async () => {
  const { exchange, heard } = open()
  exchange.letGo(1_000_000)
  await heard(0)
  exchange.follow()
  expect(await heard(0)).toEqual(['allow 0'])
  expect(await heard(2 * lookMs)).toEqual([])
  exchange.letGo(1_000_000)
  await heard(0)
  expect(await heard(1_000)).toEqual(['allow 65'])
})

test('a request whose response is over neither holds up the next one nor changes its time', async () => {
  const { exchange, state, heard } = open('content-length: 3', 'expect: 100-continue')
  state.isCarried = false
  exchange.pause()
  exchange.resume()
  exchange.follow()
  exchange.letGo(1_000_000)
  exchange.wanted()
  expect(await heard(2 * lookMs)).toEqual([])
})

test('a client that waits for permission gets it once', async () => {
  const { exchange, heard } = open('content-length: 3', 'expect: 100-continue')
  exchange.wanted()
  exchange.wanted()
  expect(await heard(0)).toEqual(['permit'])
  const other = open('content-length: 3')
  other.exchange.wanted()
  expect(await other.heard(0)).toEqual([])
})
