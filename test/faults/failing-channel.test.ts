import { expect, test } from 'bun:test'
import { startTestGateway, until } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { operatorOf } from '../support/operator.ts'
import { says } from '../support/streams.ts'
import {
  answer,
  channelsTo,
  completion,
  delta,
  done,
  event,
  finish,
  opening,
  startVendor,
  stream,
  usageEvent,
} from '../support/vendor.ts'

test('a channel that keeps failing is tried last until it answers again', async () => {
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
    const news = gateway.logged.filter((line) => line.includes('a channel keeps failing'))
    expect(news).toHaveLength(1)
    expect(news[0]).toContain('"channel":"v0"')

    // One request per minute finds out whether it still fails.
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

test('refused keys do not count as failures of their channel, which another key serves', async () => {
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
    expect(gateway.logged.filter((line) => line.includes('a channel keeps failing'))).toEqual([])
  } finally {
    await gateway.close()
    for (const vendor of [first, second]) await vendor.stop()
  }
})

const chat = { path: '/v1/chat/completions', body: says('Hello!', { model: 'm', stream: true }) }
const wholeStream = stream(opening + delta('Hi') + finish + usageEvent(10, 5) + done)
const speech = { path: '/v1/audio/speech', body: { model: 'voice', input: 'Hi', response_format: 'pcm' } }
const voice = `
  - id: voice
    capability: speech
    channels: [{ channel: v0 }, { channel: v1 }]
    speech: { formats: [pcm], charactersMax: 20 }
    prices: { inputPerMillion: "1", audioOutputPerMillion: "10" }
`
const audio = { type: 'speech.audio.delta', audio: Buffer.from([1, 0]).toString('base64') }
const audioEnd = { type: 'speech.audio.done', usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } }

test.each([
  ['chat streams breaks off', chat, stream(opening + delta('H')), wholeStream],
  [
    'chat streams ends with an error event',
    chat,
    stream(opening + delta('H') + event({ error: { message: 'no' } })),
    wholeStream,
  ],
  ['audio streams breaks off', speech, stream(event(audio)), stream(event(audio) + event(audioEnd))],
])('a channel each of whose %s is tried last until one is complete', async (_how, asked, broken, whole) => {
  const clock = movableClock()
  let isWell = false
  const first = await startVendor((socket) => void socket.write(isWell ? whole : broken))
  const second = await startVendor((socket) => void socket.write(whole))
  const gateway = await startTestGateway({ clock, yaml: channelsTo({ v0: first, v1: second }, voice) })
  const ask = async (times: number) => {
    for (let time = 0; time < times; time++) {
      const response = await gateway.post(asked.path, asked.body)
      await response.arrayBuffer().catch(() => 'cut off')
    }
    return [first.requests.length, second.requests.length]
  }
  try {
    expect(await ask(2)).toEqual([2, 0])
    expect(await ask(3)).toEqual([3, 2])
    expect(gateway.logged.filter((line) => line.includes('a channel keeps failing'))).toHaveLength(1)
    // A stream that has only begun does not show that the channel works.
    clock.advance(60_000)
    expect(await ask(2)).toEqual([4, 3])
    isWell = true
    clock.advance(60_000)
    expect(await ask(2)).toEqual([6, 3])
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    for (const vendor of [first, second]) await vendor.stop()
  }
})

const refused = { message: 'Output data may contain inappropriate content.', type: 'x', code: 'data_inspection_failed' }
const drawing = { model: 'pictures', prompt: 'a cat', stream: true }
const pictures = `
  - { id: pictures, capability: images, channels: [{ channel: v0 }, { channel: v1 }], images: { alwaysBytes: true }, prices: { perImage: "0.05" } }
`
test.each([
  ['a chat', chat, stream(event({ error: refused })), 400],
  ['a chat that has begun', chat, stream(opening + delta('H') + event({ error: refused })), 200],
  [
    'an image',
    { path: '/v1/images/generations', body: drawing },
    stream(event({ type: 'error', error: refused })),
    400,
  ],
])('%s whose words a filter refuses, however often, sets no channel aside', async (_what, asked, said, status) => {
  const first = await startVendor((socket) => void socket.write(said))
  const second = await startVendor((socket) => void socket.write(said))
  const gateway = await startTestGateway({ yaml: channelsTo({ v0: first, v1: second }, pictures) })
  try {
    for (let time = 0; time < 5; time++) {
      const response = await gateway.post(asked.path, asked.body)
      expect(response.status).toBe(status)
      expect(await response.text()).toContain(`"message":"${refused.message}","type"`)
    }
    expect([first.requests.length, second.requests.length]).toEqual([5, 0])
    expect(gateway.logged.filter((line) => line.includes('a channel keeps failing'))).toEqual([])
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    for (const vendor of [first, second]) await vendor.stop()
  }
})

test.each([
  [10_000, 4],
  [30_000, 3],
])('a silent channel that clients leave after %d ms is tried %d times by four of them', async (waitedMs, asked) => {
  const clock = movableClock()
  const first = await startVendor(() => new Promise(() => {}))
  const second = await startVendor((socket) => void socket.write(answer(200, completion('Hi'))))
  const gateway = await startTestGateway({ clock, yaml: channelsTo({ v0: first, v1: second }) })
  const { url, key } = gateway
  const leave = async (time: number) => {
    const abort = new AbortController()
    const sent = fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(says('Hello!', { model: 'm' })),
      signal: abort.signal,
    }).catch(() => 'left')
    await until(() => first.requests.length + second.requests.length === time)
    clock.advance(waitedMs)
    abort.abort()
    await sent
    await until(() => gateway.openHolds() === 0)
  }
  try {
    for (let time = 1; time <= 4; time++) await leave(time)
    expect(first.requests).toHaveLength(asked)
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    for (const vendor of [first, second]) await vendor.stop()
  }
})

test('a call to a model or a path that the vendor does not know is logged with the settings to compare', async () => {
  const vendor = await startVendor((socket, { call }) => void socket.write(answer(call === 1 ? 404 : 500, 'not here')))
  const gateway = await startTestGateway({ yaml: channelsTo({ v0: vendor }) })
  const logOfOne = async () => {
    const response = await gateway.post('/v1/chat/completions', says('Hello!', { model: 'm' }))
    await response.text()
    expect(response.status).toBe(502)
    return gateway.logged.splice(0).join('')
  }
  try {
    gateway.logged.splice(0)
    const unknown = await logOfOne()
    expect(unknown).toContain(
      "an attempt failed: the vendor knows no such model or path; compare the channel's baseUrl",
    )
    expect(unknown).toContain('"upstreamModel":')
    expect(await logOfOne()).not.toContain('baseUrl')
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})
