import { describe, expect, test } from 'bun:test'
import { formatDollars, parseDollars } from '../../src/base/money.ts'
import { until } from '../support/gateway.ts'
import { hurried } from '../support/hurried.ts'
import { movableClock } from '../support/movable-clock.ts'
import { videoGateway } from '../support/ordered-videos.ts'
import { refusedForFree } from '../support/refused.ts'
import { clip, image } from '../support/video-asks.ts'

const { post, order, read, cancel, ended, writtenOf, gateway } = videoGateway()

const turbo = { model: 'gen4-turbo', duration: 5 }
const picture = (prompt: string) => ({ ...turbo, input: { prompt, image } })

test('an order is delivered and charged what the vendor bills', async () => {
  const body = { ...turbo, aspect_ratio: '9:16', input: { prompt: 'A fox.', image }, parameters: { seed: 9 } }
  const done = await order(body, '?wait=true')
  expect((await fetch(done.content?.video_url ?? 'none')).headers.get('content-type')).toBe('video/mp4')
  expect(done).toMatchObject({
    status: 'succeeded',
    usage: { duration: 5, resolution: '720p', aspect_ratio: '9:16' },
    seed: 9,
  })
  const { task, hold, request, attempts, entries, bill } = await writtenOf(done.id)
  const dollars = parseDollars('0.25')
  expect(task).toMatchObject({ state: 'succeeded', vendor: 'runway', upstream_model: 'gen4_turbo', sends: 1 })
  expect(hold).toMatchObject({ state: 'settled', amount: dollars })
  expect(request).toMatchObject({ cost: dollars, basis: 'vendor', usage: { video: { seconds: 5 } } })
  expect(attempts).toMatchObject([{ id: task.attempt_id, vendor: 'runway', status: 200, vendor_cost: dollars }])
  expect(entries).toMatchObject({ 'cost:runway': '-0.25', 'payable:runway': '0.25' })
  expect(bill).toEqual(['0.25'])
})

test('an edited video, whose length the vendor does not report, is charged as an estimate', async () => {
  const input = { prompt: 'In the snow.', media: [{ type: 'reference_video', url: clip }] }
  const done = await order({ model: 'gen4-aleph', input }, '?wait=true')
  expect(done.status).toBe('succeeded')
  const { request, bill } = await writtenOf(done.id)
  expect(request).toMatchObject({ basis: 'estimated', cost: parseDollars('0.75') })
  expect(bill).toEqual(['0.75'])
})

test('a failed task is free and has the vendor’s code and message', async () => {
  const { id } = await order(picture('A fox. sandbox:fail=SAFETY.INPUT.TEXT'))
  expect(await ended(id)).toMatchObject({
    status: 'failed',
    error: { code: 'SAFETY.INPUT.TEXT', message: 'The content was held back by moderation.' },
  })
  const { hold, request, attempts, bill } = await writtenOf(id)
  expect(hold.state).toBe('void')
  expect([request.cost, attempts[0]?.vendor_cost]).toEqual([0n, 0n] as never)
  expect(bill).toEqual(['0'])
})

test.each<[object, string]>([
  [{ ...turbo, input: { prompt: 'A fox.' } }, 'input.media'],
  [{ ...turbo, input: { image, image_tail: image } }, 'input.image_tail'],
  [{ ...turbo, input: { image: 'http://pictures.test/fox.png' } }, 'input.image'],
  [
    { ...turbo, input: { media: [{ type: 'first_frame', url: 'http://pictures.test/fox.png' }] } },
    'input.media[0].url',
  ],
  [{ ...turbo, duration: 7, input: { image } }, 'duration'],
  [{ ...turbo, resolution: '1080p', input: { image } }, 'resolution'],
  [{ model: 'gen4.5', aspect_ratio: '1:1', input: { prompt: 'A fox.' } }, 'aspect_ratio'],
])('a request that the model does not support is refused with its field named: %j', async (body, param) => {
  const response = await refusedForFree(gateway(), () => post(body))
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { param } })
})

test('an order that the vendor refuses gets the vendor’s message and leaves no hold', async () => {
  const before = await gateway().balance()
  const response = await post(picture('A fox. sandbox:status=400'))
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { error: { message: 'There is a problem with one of the inputs.' } },
  ])
  expect(await gateway().balance()).toEqual(before)
})

/** The HTTP status of the task at the vendor. */
const statusAtVendor = async (id: string) => {
  const headers = { authorization: 'Bearer key', 'x-runway-version': '2024-11-06' }
  const { task } = await writtenOf(id)
  return (await fetch(`${gateway().sandboxUrl}/runway/v1/tasks/${task.upstream_id}`, { headers })).status
}

describe('cancelling', () => {
  test('a queued task is cancelled for free, although the vendor then no longer knows it', async () => {
    const before = await gateway().balance()
    const { id } = await order(picture('A fox. sandbox:queued=60000'))
    expect(formatDollars((await gateway().balance()).held)).toBe('0.25')
    const cancelled = await cancel(id)
    expect([cancelled.status, await cancelled.json()]).toMatchObject([200, { id, status: 'cancelled' }])
    const { task, hold, bill } = await writtenOf(id)
    expect([task.state, hold.state, bill]).toEqual(['cancelled', 'void', ['0']])
    expect(await gateway().balance()).toEqual(before)
    expect((await read(id)).status).toBe('cancelled')
    expect((await cancel(id)).status).toBe(409)
    expect(await statusAtVendor(id)).toBe(404)
  })

  test('a running task and a finished one cannot be cancelled, and the vendor keeps them', async () => {
    const { id } = await order(picture('A fox. sandbox:queued=0 sandbox:slow=4000'))
    await until(async () => (await read(id)).status === 'running')
    expect((await cancel(id)).status).toBe(409)
    expect((await ended(id)).status).toBe('succeeded')
    expect((await cancel(id)).status).toBe(409)
    expect(await statusAtVendor(id)).toBe(200)
    expect((await writtenOf(id)).bill).toEqual(['0.25'])
  })
})

describe('a creation in doubt', () => {
  const clock = movableClock()
  const videos = videoGateway({ clock, yaml: 'tasks: { pollSeconds: 0.1, doubtSeconds: 0.1 }' })
  const moving = videos.gateway

  test.each(['sandbox:lost', 'sandbox:charge-then-fail=500'])(
    'the task is not sent again, keeps its hold, and fails at its deadline: %s',
    async (word) => {
      const before = await moving().balance()
      const { id, status } = await videos.order(picture(`A fox. ${word}`))
      expect(status).toBe('submitted')
      const polled = until(async () => (await videos.writtenOf(id)).task.polls > 1)
      await hurried(moving(), clock, polled)
      const doubtful = await videos.writtenOf(id)
      expect(doubtful.task).toMatchObject({ state: 'creating', in_doubt: true, sends: 1, upstream_id: null })
      expect(doubtful.hold.state).toBe('open')
      expect(await videos.read(id)).not.toHaveProperty('upstream_id')
      expect(formatDollars((await moving().balance()).held)).toBe('0.25')
      // The vendor made it once.
      await until(async () => (await videos.writtenOf(id)).bill.length > 0)
      expect((await videos.writtenOf(id)).bill).toEqual(['0.25'])
      clock.advance(25 * 60 * 60_000)
      expect(await hurried(moving(), clock, videos.ended(id))).toMatchObject({
        status: 'failed',
        error: { code: 'timeout' },
      })
      expect((await videos.writtenOf(id)).hold.state).toBe('void')
      expect(await moving().balance()).toEqual(before)
    },
    120_000,
  )
})
