import { expect, test } from 'bun:test'
import { startTestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { operatorOf } from '../support/operator.ts'
import { says } from '../support/streams.ts'
import { answer, channelsTo, completion, startVendor } from '../support/vendor.ts'

test('a channel that fails time and again is asked last, until it answers again', async () => {
  const clock = movableClock()
  let isWell = false
  const first = await startVendor((socket) => {
    socket.write(isWell ? answer(200, completion('Hi')) : answer(500, '{"error":{"message":"broken"}}'))
  })
  const second = await startVendor((socket) => void socket.write(answer(200, completion('Hi'))))
  const gateway = await startTestGateway({ clock, yaml: channelsTo({ v0: first, v1: second }) })
  const ask = async (times: number) => {
    for (let time = 0; time < times; time++) {
      const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm' }))
      await response.text()
      expect(response.status).toBe(200)
    }
    return [first.requests.length, second.requests.length]
  }
  const healths = async () => {
    const channels = await operatorOf(gateway).all<{ id: string; health: string }>('/admin/channels')
    return channels.map(({ health }) => health)
  }
  try {
    expect(await ask(3)).toEqual([3, 3])
    expect(await ask(3)).toEqual([3, 6])
    expect(await healths()).toEqual(['degraded', 'ok'])
    const news = gateway.logged.filter((line) => line.includes('a channel fails time and again'))
    expect(news).toHaveLength(1)
    expect(news[0]).toContain('"channel":"v0"')

    // One request in a minute finds out whether that is still so.
    clock.advance(60_000)
    expect(await ask(2)).toEqual([4, 8])
    isWell = true
    clock.advance(60_000)
    expect(await ask(2)).toEqual([6, 8])
    expect(await healths()).toEqual(['ok', 'ok'])
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    for (const vendor of [first, second]) await vendor.stop()
  }
})

test('keys that are refused one after another say nothing against their channel, which another key serves', async () => {
  const first = await startVendor((socket, { call }) => {
    socket.write(call <= 3 ? answer(401, '{"error":{"message":"no"}}') : answer(200, completion('Hi')))
  })
  const second = await startVendor((socket) => void socket.write(answer(200, completion('Hi'))))
  const yaml = channelsTo({ v0: { ...first, key: 'first-key' }, v1: second })
  const keys = '"first-key", "second-key", "third-key", "fourth-key"'
  const gateway = await startTestGateway({ yaml: yaml.replace('"first-key"', keys) })
  try {
    for (let time = 0; time < 5; time++) {
      const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm' }))
      await response.text()
      expect(response.status).toBe(200)
    }
    expect([first.requests.length, second.requests.length]).toEqual([5, 3])
    expect(gateway.logged.filter((line) => line.includes('a channel fails time and again'))).toEqual([])
  } finally {
    await gateway.close()
    for (const vendor of [first, second]) await vendor.stop()
  }
})
