import { expect, test } from 'bun:test'
import { startTestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { answer, channelsTo, startVendor } from '../support/vendor.ts'

test("a date in the vendor's Retry-After is read by the gateway's own clock", async () => {
  const clock = movableClock()
  clock.advance(86_400_000)
  const vendor = await startVendor((socket) => {
    const date = new Date(clock.now() + 120_000).toUTCString()
    socket.write(answer(429, JSON.stringify({ error: { message: 'slow down' } }), { 'retry-after': date }))
  })
  const gateway = await startTestGateway({ clock, yaml: channelsTo({ v0: vendor }) })
  try {
    const asked = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }
    const refused = await gateway.post('/v1/chat/completions', asked)
    await refused.text()
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeWithin(60, 122)
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})
