import { afterEach, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { attemptsOf } from '../support/records.ts'
import { says } from '../support/streams.ts'
import { answer, completion, startVendor, type RawVendor, type Reply } from '../support/vendor.ts'

/** What an operator reads in the log about a key that its vendor refuses, wherever it was used. */
const keys = ['vk-first-canary-0123456789', 'vk-second-canary-0123456789'] as const
const refusal = JSON.stringify({ error: { message: `no: ${keys[1]}`, code: 'invalid_api_key' } })
const busy = JSON.stringify({ error: { message: 'slower', code: 'rate_limit_exceeded' } })

let world: { gateway: TestGateway; vendor: RawVendor } | undefined
afterEach(async () => {
  await world?.gateway.assertBooks()
  expect(world?.gateway.logged.join('')).not.toContain('canary')
  await world?.gateway.close()
  await world?.vendor.stop()
  world = undefined
})

async function open(vendorId: string, reply: Reply, attemptsMax = 1) {
  const clock = movableClock()
  const vendor = await startVendor(reply)
  const channel = { id: 'main', vendor: vendorId, baseUrl: vendor.baseUrl, keys }
  const prices = { inputPerMillion: '1', outputPerMillion: '10' }
  const model = { id: 'm', capability: 'chat', channels: [{ channel: 'main' }], prices }
  const settings = { sandbox: false, channels: [channel], models: [model], limits: { attemptsMax } }
  const yaml = Object.entries(settings)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join('\n')
  const gateway = await startTestGateway({ clock, yaml })
  world = { gateway, vendor }
  const complaints = () =>
    gateway.logged
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => String(msg).startsWith('a vendor refuses a key'))
  const chat = () => gateway.post('/v1/chat/completions', says('Hello!', { model: 'm' }))
  return { gateway, clock, complaints, chat }
}

const ofSecondKey = (head: string) => head.includes(`Bearer ${keys[1]}`)

test('a refused key is logged once per rest, by its position and with what to do', async () => {
  const waiting: (() => void)[] = []
  const { clock, complaints, chat } = await open('compatible', (socket, { head }) => {
    if (!ofSecondKey(head)) return void socket.write(answer(200, completion('Hi')))
    // Two calls are refused at the same time: both had the key before either of them could put it to rest.
    waiting.push(() => socket.write(answer(401, refusal)))
    if (waiting.length % 2 === 0) for (const say of waiting.splice(0)) say()
  })
  const round = () =>
    Promise.all(Array.from({ length: 4 }, chat)).then((all) =>
      all.map(({ status }) => status).toSorted((a, b) => a - b),
    )

  expect(await round()).toEqual([200, 200, 502, 502])
  expect(complaints()).toEqual([
    expect.objectContaining({ level: 50, channel: 'main', vendor: 'compatible', key: '2 of 2', status: 401 }),
  ] as never)
  expect(complaints()[0]?.['msg']).toMatch(/give another key, which takes effect at once in turnpike\.yaml/)
  expect(await round()).toEqual([200, 200, 200, 200])
  expect(complaints()).toHaveLength(1)

  clock.advance(61_000)
  expect(await round()).toEqual([200, 200, 502, 502])
  expect(complaints()).toHaveLength(2)
})

test('a key that is only over its rate is not logged', async () => {
  const { complaints, chat } = await open('compatible', (socket) => void socket.write(answer(429, busy)))
  expect((await chat()).status).toBe(429)
  expect(complaints()).toEqual([])
})

test('a key that is refused for a video is logged too', async () => {
  const { gateway, complaints } = await open('dashscope', (socket) => void socket.write(answer(401, refusal)))
  const input = { prompt: 'A lighthouse' }
  expect((await gateway.post('/v1/videos/generations', { model: 'wan2.6-t2v', input })).status).toBe(502)
  expect(complaints()).toMatchObject([{ channel: 'main', vendor: 'dashscope', key: '2 of 2', status: 401 }])
})

const faults = [
  [401, refusal],
  [402, JSON.stringify({ error: { message: 'Insufficient Balance', code: 'insufficient_balance' } })],
  [429, busy],
] as const

test.each(faults)('a customer sees nothing of a %p where another key of the channel answers', async (status, body) => {
  const { gateway, chat } = await open(
    'compatible',
    (socket, { head }) => void socket.write(ofSecondKey(head) ? answer(status, body) : answer(200, completion('Hi'))),
    2,
  )
  // The keys are used in turn, and the second one comes first.
  const first = await chat()
  expect([first.status, (await chat()).status]).toEqual([200, 200])
  const attempts = await attemptsOf(gateway, first)
  expect(attempts.map((attempt) => attempt.status)).toEqual([status, 200])
})
