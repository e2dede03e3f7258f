import { describe, expect, test } from 'bun:test'
import { formatDollars, parseDollars } from '../../src/base/money.ts'
import { until } from '../support/gateway.ts'
import { hurried } from '../support/hurried.ts'
import { movableClock } from '../support/movable-clock.ts'
import { videoGateway } from '../support/ordered-videos.ts'
import { booked } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { image } from '../support/video-asks.ts'

const { post, order, read, cancel, ended, writtenOf, gateway } = videoGateway()

const turbo = { model: 'viduq3-turbo', duration: 5, resolution: '720p' }
const video = (prompt: string) => ({ ...turbo, input: { prompt } })

test('an order is charged by the credits in the vendor’s record, which are on its bill', async () => {
  const done = await order({ ...video('A fox.'), parameters: { seed: 9, audio: false } }, '?wait=true')
  expect((await fetch(done.content?.video_url ?? 'none')).headers.get('content-type')).toBe('video/mp4')
  expect(done).toMatchObject({
    status: 'succeeded',
    credits: 55,
    usage: { duration: 5, resolution: '720p', aspect_ratio: '16:9', credits: 55 },
    seed: 9,
  })
  expect(done.usage).not.toHaveProperty('total_tokens')
  const { task, hold, request, attempts, entries, bill } = await writtenOf(done.id)
  const dollars = parseDollars('0.275')
  expect(task).toMatchObject({ state: 'succeeded', vendor: 'vidu', upstream_model: 'viduq3-turbo', sends: 1 })
  expect(hold).toMatchObject({ state: 'settled', amount: dollars })
  expect(request).toMatchObject({ cost: dollars, basis: 'vendor', usage: { videoToken: 55 } })
  expect(attempts).toMatchObject([{ id: task.attempt_id, vendor: 'vidu', status: 200, vendor_cost: dollars }])
  expect(entries).toMatchObject({ 'cost:vidu': '-0.275', 'payable:vidu': '0.275' })
  expect(bill).toEqual(['0.275'])
})

test('a video that takes fewer credits than were held is charged only those', async () => {
  const input = { prompt: 'The same fox.', media: [{ type: 'reference_image', url: image }] }
  const { id } = await order({ ...turbo, input }, '?wait=true')
  const { hold, request, bill } = await writtenOf(id)
  expect([formatDollars(hold.amount), formatDollars(request.cost), bill]).toEqual(['0.275', '0.25', ['0.25']])
})

test('credits beyond the hold are our loss and are logged', async () => {
  const before = await booked(gateway(), 'platform:loss')
  const { id } = await order(video('A fox. sandbox:usage=70'), '?wait=true')
  const { request, attempts, bill } = await writtenOf(id)
  expect([formatDollars(request.cost), bill]).toEqual(['0.275', ['0.35']])
  expect(formatDollars(attempts[0]?.vendor_cost ?? request.cost)).toBe('0.35')
  expect(before - (await booked(gateway(), 'platform:loss'))).toBe(parseDollars('0.075') ?? 0n)
  expect(gateway().logged.join('')).toContain('usage exceeds the hold')
})

test('a record without credits is charged the amount of the hold, as an estimate', async () => {
  const { id } = await order(video('A fox. sandbox:nousage'), '?wait=true')
  expect((await writtenOf(id)).request).toMatchObject({ basis: 'estimated', cost: parseDollars('0.275') })
})

test('a failed task is free and has the vendor’s error code', async () => {
  const { id } = await order(video('A fox. sandbox:fail=CreationPolicyViolation'))
  expect(await ended(id)).toMatchObject({ status: 'failed', error: { code: 'CreationPolicyViolation' } })
  const { hold, request, attempts, bill } = await writtenOf(id)
  expect(hold.state).toBe('void')
  expect([request.cost, attempts[0]?.vendor_cost]).toEqual([0n, 0n] as never)
  expect(bill).toEqual(['0'])
})

test('the record shows neither the prompt nor the vendor’s other links', async () => {
  const { id } = await order(video('A secret fox.'), '?wait=true')
  const shown = JSON.stringify(await read(id))
  for (const word of ['secret', 'cover_url', 'payload']) expect(shown).not.toContain(word)
})

test.each<[object, string]>([
  [{ ...turbo, duration: 2, input: { prompt: 'A fox.' } }, 'duration'],
  [{ ...turbo, resolution: '4k', input: { prompt: 'A fox.' } }, 'resolution'],
  [{ ...turbo, input: { prompt: 'A fox.', negative_prompt: 'dark' } }, 'input.negative_prompt'],
  [{ ...turbo, input: { prompt: 'A fox.' }, parameters: { off_peak: true } }, 'parameters.off_peak'],
])('a request that the model does not support is refused with its field named: %j', async (body, param) => {
  const response = await refusedForFree(gateway(), () => post(body))
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { param } })
})

test('an order that the vendor refuses gets the vendor’s message and leaves no hold', async () => {
  const before = await gateway().balance()
  const response = await post(video('A fox. sandbox:status=400'))
  expect([response.status, await response.json()]).toMatchObject([400, { error: { message: 'A field is not valid.' } }])
  expect(await gateway().balance()).toEqual(before)
})

test('a Vidu task cannot be cancelled', async () => {
  const { id } = await order(video('A fox. sandbox:queued=3000'))
  const refused = await cancel(id)
  expect([refused.status, await refused.json()]).toMatchObject([409, { error: { code: 'not_cancellable' } }])
  expect((await ended(id)).status).toBe('succeeded')
})

describe('a creation in doubt', () => {
  const clock = movableClock()
  const videos = videoGateway({ clock, yaml: 'tasks: { pollSeconds: 0.1, doubtSeconds: 0.1 }' })
  const moving = videos.gateway

  test('the task is not sent again, keeps its hold, and fails at its deadline', async () => {
    const before = await moving().balance()
    const { id } = await videos.order(video('A fox. sandbox:lost'))
    const polled = until(async () => (await videos.writtenOf(id)).task.polls > 1)
    await hurried(moving(), clock, polled)
    const doubtful = await videos.writtenOf(id)
    expect(doubtful.task).toMatchObject({ state: 'creating', in_doubt: true, sends: 1, upstream_id: null })
    expect(doubtful.hold.state).toBe('open')
    await until(async () => (await videos.writtenOf(id)).bill.length > 0)
    expect((await videos.writtenOf(id)).bill).toEqual(['0.275'])
    clock.advance(25 * 60 * 60_000)
    expect(await hurried(moving(), clock, videos.ended(id))).toMatchObject({
      status: 'failed',
      error: { code: 'timeout' },
    })
    expect(await moving().balance()).toEqual(before)
  }, 120_000)
})
