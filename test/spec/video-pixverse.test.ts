import { expect, test } from 'bun:test'
import { parseDollars } from '../../src/base/money.ts'
import { videoGateway } from '../support/ordered-videos.ts'
import { refusedForFree } from '../support/refused.ts'
import { until } from '../support/gateway.ts'
import { image, media } from '../support/video-asks.ts'

const { post, order, read, cancel, ended, writtenOf, gateway } = videoGateway()

const v6 = { model: 'pixverse-v6', duration: 5, resolution: '720p' }
const video = (prompt: string) => ({ ...v6, input: { prompt } })

test.each([
  // 0.36 and 0.27 yuan a second.
  [true, '0.252'],
  [false, '0.189'],
])('an order with audio %p is delivered and charged what the vendor bills', async (audio, cost) => {
  const done = await order({ ...video('A fox.'), parameters: { seed: 9, audio } }, '?wait=true')
  expect((await fetch(done.content?.video_url ?? 'none')).headers.get('content-type')).toBe('video/mp4')
  expect(done).toMatchObject({
    status: 'succeeded',
    usage: { duration: 5, resolution: '720p', aspect_ratio: '16:9' },
    seed: 9,
  })
  const { task, hold, request, attempts, entries, bill } = await writtenOf(done.id)
  const dollars = parseDollars(cost)
  expect(task).toMatchObject({ state: 'succeeded', vendor: 'pixverse', upstream_model: 'v6', sends: 1 })
  expect(hold).toMatchObject({ state: 'settled', amount: dollars })
  expect(request).toMatchObject({ cost: dollars, basis: 'vendor' })
  expect(attempts).toMatchObject([{ id: task.attempt_id, vendor: 'pixverse', status: 200, vendor_cost: dollars }])
  expect(entries).toMatchObject({ 'cost:pixverse': `-${cost}`, 'payable:pixverse': cost })
  expect(bill).toEqual([cost])
})

test.each([
  ['a first frame', [['first_frame', image]]],
  [
    'a first and a last frame',
    [
      ['first_frame', image],
      ['last_frame', 'https://example.com/b.png'],
    ],
  ],
] as const)('a video from %s costs the same, and uploading its images is free', async (_, frames) => {
  const done = await order({ ...v6, input: media(...frames) }, '?wait=true')
  expect(done).toMatchObject({ status: 'succeeded', usage: { duration: 5, resolution: '720p' } })
  const { task, hold, request, attempts, entries, bill } = await writtenOf(done.id)
  const dollars = parseDollars('0.252')
  expect(task).toMatchObject({ state: 'succeeded', vendor: 'pixverse', sends: 1 })
  expect(hold).toMatchObject({ state: 'settled', amount: dollars })
  expect(request).toMatchObject({ cost: dollars, basis: 'vendor' })
  expect(attempts).toMatchObject([{ id: task.attempt_id, status: 200, vendor_cost: dollars }])
  expect(entries).toMatchObject({ 'cost:pixverse': '-0.252', 'payable:pixverse': '0.252' })
  expect(bill).toEqual(['0.252'])
})

const framed = (words: string) => ({ ...v6, input: media(['first_frame', `${image}?sandbox:${words}`]) })

test.each([
  ['fail=500052', 400, { message: 'The image was held back by moderation.' }],
  ['fail=500032', 400, { message: 'The image format is not supported.' }],
  ['status=429', 429, { message: expect.stringContaining('too many requests') }],
  ['status=500', 502, { message: expect.stringContaining('vendor') }],
  ['html', 502, { message: expect.stringContaining('vendor') }],
])('an image upload that fails with %s is a %i, and nothing is ordered or held', async (word, status, error) => {
  const before = await gateway().balance()
  const response = await post(framed(word))
  expect([response.status, await response.json()]).toMatchObject([status, { error }])
  expect(await gateway().balance()).toEqual(before)
  const tasks = gateway().store.db.selectFrom('task').select(['state', 'in_doubt']).orderBy('created_at', 'desc')
  expect(await tasks.executeTakeFirst()).toMatchObject({ state: 'refused' })
})

test('a client that leaves during the image upload has its video made and charged once', async () => {
  const { store, url, key } = gateway()
  const leaving = new AbortController()
  const asked = fetch(`${url}/v1/videos/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(framed('delay=300')),
    signal: leaving.signal,
  }).catch(() => undefined)
  const unfinished = store.db.selectFrom('task').select('id').where('finished_at', 'is', null)
  let id = ''
  await until(async () => (id = (await unfinished.executeTakeFirst())?.id ?? '') !== '')
  leaving.abort()
  await asked
  expect(await ended(id)).toMatchObject({ status: 'succeeded' })
  const { hold, request, bill } = await writtenOf(id)
  expect(hold.state).toBe('settled')
  expect(request).toMatchObject({ cost: parseDollars('0.252') })
  expect(bill).toEqual(['0.252'])
})

test.each([
  ['500063', 'content_filtered'],
  ['99999', 'upstream_failed'],
])('a task that fails with %s is free', async (code, shown) => {
  const { id } = await order(video(`A fox. sandbox:fail=${code}`))
  expect(await ended(id)).toMatchObject({ status: 'failed', error: { code: shown, message: expect.any(String) } })
  const { hold, request, attempts, bill } = await writtenOf(id)
  expect(hold.state).toBe('void')
  expect([request.cost, attempts[0]?.vendor_cost]).toEqual([0n, 0n] as never)
  expect(bill).toEqual(['0'])
})

test('the record does not show the prompts', async () => {
  const { id } = await order(
    { ...v6, input: { prompt: 'A secret fox.', negative_prompt: 'a secret hare' } },
    '?wait=true',
  )
  expect(JSON.stringify(await read(id))).not.toContain('secret')
})

test.each<[object, string]>([
  [{ ...video('A fox.'), duration: 16 }, 'duration'],
  [{ ...video('A fox.'), resolution: '4k' }, 'resolution'],
  [{ ...v6, input: media(['reference_image']) }, 'input.media[0].type'],
  [{ ...v6, input: { image } }, 'input.prompt'],
  [{ ...video('A fox.'), parameters: { img_id: 7 } }, 'parameters.img_id'],
  [{ ...video('A fox.'), parameters: { quality: '1080p' } }, 'parameters.quality'],
])('a request that the model does not support is refused with its field named: %j', async (body, param) => {
  const response = await refusedForFree(gateway(), () => post(body))
  expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }])
})

test.each([
  ['status=400', 400, { message: 'A parameter is not valid.' }],
  ['status=429', 429, { message: expect.stringContaining('too many requests') }],
  ['status=402', 502, { message: expect.stringContaining('vendor') }],
])('an order that the vendor refuses under a 200 is an error and costs nothing: %s', async (word, status, error) => {
  const before = await gateway().balance()
  const response = await post(video(`A fox. sandbox:${word}`))
  expect([response.status, await response.json()]).toMatchObject([status, { error }])
  expect(await gateway().balance()).toEqual(before)
})

test('a PixVerse task cannot be cancelled', async () => {
  const { id } = await order(video('A fox. sandbox:queued=3000'))
  const refused = await cancel(id)
  expect([refused.status, await refused.json()]).toMatchObject([409, { error: { code: 'not_cancellable' } }])
  expect((await ended(id)).status).toBe('succeeded')
})
