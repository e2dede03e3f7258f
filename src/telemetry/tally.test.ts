import { expect, test } from 'bun:test'
import { systemTimers } from '../base/clock.ts'
import { Closing } from '../base/closing.ts'
import { nano, zeroNano } from '../base/money.ts'
import { units } from '../capabilities/usage.ts'
import { readExposition } from '../../test/support/exposition.ts'
import { Buckets } from './buckets.ts'
import { Tally } from './tally.ts'
import { openTelemetry } from './telemetry.ts'

const ending = { status: 200, streamed: false, durationMs: 100, attempts: [] }
const chat = { capability: 'chat', model: 'm' }
const standing = {
  mode: 'sandbox',
  isDraining: false,
  models: 1,
  openHolds: 0,
  unposted: 0,
  unknownStates: [],
  stored: undefined,
}

function open() {
  const closing = new Closing(['telemetry'])
  const telemetry = openTelemetry({ version: '0.0.0', timers: systemTimers, closing })
  const scrape = async () => readExposition((await telemetry.scrape(standing)).text)
  return { tally: telemetry.tally, scrape, close: () => closing.close() }
}

test.each(units.filter((unit) => unit !== 'request'))('a charged %s is shown in the metrics', async (unit) => {
  const { tally, scrape, close } = open()
  const before = await scrape()
  tally.ended(chat, ending, { charged: zeroNano, usage: { [unit]: 7 } })
  const after = await scrape()
  const known = new Set(before.samples.map(({ name }) => name))
  const used = after.samples.filter(({ name, value }) => !known.has(name) && value === 7)
  expect(used).toHaveLength(1)
  await close()
})

test('images and video seconds are shown in the metrics, and credits do not count as tokens', async () => {
  const { tally, scrape, close } = open()
  const video = { seconds: 5, resolution: '720p' } as const
  const sell = (usage: object) => tally.ended(chat, ending, { charged: nano(1n), usage })
  sell({ images: { count: 3 } })
  sell({ video, videoToken: 11 })
  sell({ video: { ...video, inCredits: true }, videoToken: 500 })
  const found = await scrape()
  expect(found.value('turnpike_images_total', chat)).toBe(3)
  expect(found.value('turnpike_video_seconds_total', chat)).toBe(10)
  expect(found.all('turnpike_tokens_total')).toEqual({ 'chat m video': 11 })
  expect(found.value('turnpike_charged_dollars_total', chat)).toBe(3e-9)
  await close()
})

test('the number of series is limited for any number of models and channels, and sums stay complete', async () => {
  const { tally, scrape, close } = open()
  const attempt = { vendor: 'v', status: 200, vendorCost: nano(1n), delivered: true }
  for (let n = 0; n < 3_000; n++) {
    const attempts = [{ ...attempt, channel: `channel-${n}` }]
    tally.ended({ capability: 'chat', model: `model-${n}` }, { ...ending, attempts }, { charged: nano(2n), usage: {} })
    tally.taskEnded(`model-${n}`, 'succeeded')
  }
  const found = await scrape()
  for (const name of ['turnpike_requests_total', 'turnpike_attempts_total', 'turnpike_video_tasks_ended_total']) {
    const values = Object.values(found.all(name))
    expect(values).toHaveLength(1_001)
    expect(values.reduce((sum, value) => sum + value, 0)).toBe(3_000)
  }
  expect(found.value('turnpike_requests_total', { capability: 'chat', model: 'other', status: '2xx' })).toBe(2_000)
  await close()
})

test('a label with special characters stays one label', async () => {
  const { tally, scrape, close } = open()
  const model = 'a"b\\c\nd{e="f"} 1'
  tally.ended({ capability: 'chat', model }, ending)
  expect((await scrape()).value('turnpike_requests_total', { capability: 'chat', model, status: '2xx' })).toBe(1)
  await close()
})

test('a value equal to the bound of a bucket is counted in that bucket', () => {
  const buckets = new Buckets([1, 5])
  for (const value of [0, 1, 1.1, 5, 5.1]) buckets.add(value)
  expect(buckets.counts).toEqual([2, 2, 1])
  expect({ sum: buckets.sum, count: buckets.count }).toEqual({ sum: 12.2, count: 5 })
})

test('a late cost is added, and a negative one is ignored', () => {
  const tally = new Tally()
  tally.costLate(chat, nano(5n))
  tally.costLate(chat, nano(-3n))
  expect(tally.capabilities.get('chat')?.models.get('m')?.costNano).toBe(5)
})
