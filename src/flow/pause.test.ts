import { expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { pauseBefore } from './pause.ts'

const busy = new GatewayError('too-many', 'Try again.', { retryAfterSeconds: 5 })

test.each(['the client', 'the node'])('the pause before a retry ends at once when %s is leaving', async (who) => {
  const [client, stop] = [new AbortController(), new AbortController()]
  const paused = pauseBefore(1, busy, [client.signal, stop.signal])
  const leaving = who === 'the node' ? stop : client
  leaving.abort()
  // A second shows that the pause has ended: it would have taken five.
  expect(await Promise.race([paused, new Promise((resolve) => setTimeout(() => resolve('still waits'), 1_000))])).toBe(
    false,
  )
  expect(await pauseBefore(1, busy, [client.signal, stop.signal])).toBe(false)
})
