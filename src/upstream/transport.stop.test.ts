import { afterEach, expect, test } from 'bun:test'
import { openBlackhole } from '../../test/support/blackhole.ts'
import { answer } from '../../test/support/vendor.ts'
import { noUnheardRejections, startWire, type Wire } from '../../test/support/wire.ts'
import { systemClock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { makeTransport } from './transport.ts'

noUnheardRejections()

let wire: Wire
afterEach(() => wire.stop())

const timeouts = { connectMs: 3_000, firstByteMs: 10_000, idleMs: 5_000, totalMs: 60_000 }
const { signal } = new AbortController()
const reason = new GatewayError('overloaded', 'The gateway is being stopped.')

function openTransport() {
  const transport = makeTransport(systemClock)
  return { transport, send: (url: string) => transport.send({ url, headers: {} }, timeouts, signal, 'kept') }
}

test('a stop ends the calls under way, and later calls are not sent', async () => {
  const asked = Promise.withResolvers<void>()
  wire = await startWire({
    reply: ({ socket }, { path }) => void (path === '/slow' ? asked.resolve() : socket.write(answer(200, 'hello'))),
  })
  const { transport, send } = openTransport()
  const slow = send(`${wire.url}/slow`)
  await asked.promise
  transport.stop(reason)
  expect(await slow).toEqual({ kind: 'failed', error: reason, delivery: 'unknown' })
  expect(await send(wire.url)).toEqual({ kind: 'failed', error: reason, delivery: 'unsent' })
  expect(wire.lines).toHaveLength(1)
})

test('a stop ends a call that is still connecting, with nothing sent', async () => {
  wire = await startWire({})
  const blackhole = await openBlackhole()
  const { transport, send } = openTransport()
  const waiting = send(blackhole.baseUrl)
  transport.stop(reason)
  expect(await waiting).toEqual({ kind: 'failed', error: reason, delivery: 'unsent' })
  blackhole.close()
})
