import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway, until } from '../support/gateway.ts'
import { videosOf } from '../support/ordered-videos.ts'
import { clip, image, media } from '../support/video-asks.ts'

let gateway: TestGateway
const { idle, writtenOf } = videosOf(() => gateway)
beforeAll(async () => {
  gateway = await startTestGateway()
})
afterEach(async () => {
  await idle()
  await gateway.assertBooks()
})
afterAll(() => gateway.close())

const path = '/v1/videos/generations'
const wan = { model: 'wan2.6-t2v', duration: 5, resolution: '720p' }
const onePointFive = { model: 'doubao-seedance-1-5-pro-251215' }

type Shown = {
  id: string
  status: string
  seed?: number | null
  content?: object | null
  upstream_id?: string
  usage?: { readonly duration: number; readonly aspect_ratio?: string } | null
  output?: { task_status: string }
  error?: { code: string; param: string | null; message: string }
}

async function order(body: object, query = ''): Promise<Shown & { code: number }> {
  const response = await gateway.post(path + query, body)
  return { ...((await response.json()) as Shown), code: response.status }
}

async function call(method: string, id: string): Promise<Shown> {
  const headers = { authorization: `Bearer ${gateway.key}` }
  const response = await fetch(`${gateway.url}${path}/${encodeURIComponent(id)}`, { method, headers })
  expect(response.status).toBe(200)
  return (await response.json()) as Shown
}

const made = (body: object) => order(body, '?wait=true')

describe('the record of a task that is over', () => {
  test('the seed that was sent is shown where the vendor returns none', async () => {
    const input = { prompt: 'A fox.' }
    const videos = await Promise.all([
      made({ ...wan, input, parameters: { seed: 7 } }),
      made({ model: 'veo-3.1-generate-preview', input, parameters: { seed: 8 } }),
      made({ model: 'kling-v2-6', input, parameters: { seed: 9 } }),
    ])
    expect(videos.map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'succeeded'])
    // The seed is not sent to Kling, so its video was not made with it.
    expect(videos.map(({ seed }) => seed)).toEqual([7, 8, null])
  })

  const ofEachVendor = [
    'wan2.6-t2v',
    'wan2.7-t2v',
    'doubao-seedance-1-5-pro-251215',
    'veo-3.1-generate-preview',
    'kling-v2-6',
    'minimax-hailuo-02',
    'gen4.5',
    'viduq3-pro',
    'pixverse-v6',
    'sora-2',
  ]

  test.each(ofEachVendor)('content, usage and seed are shown after success and after failure: %s', async (model) => {
    const [succeeded, failed] = await Promise.all([
      made({ model, input: { prompt: 'A fox.' } }),
      made({ model, input: { prompt: 'A fox. sandbox:fail=InternalError' } }),
    ])
    expect(succeeded).toMatchObject({ status: 'succeeded', content: expect.any(Object), usage: expect.any(Object) })
    expect(succeeded.seed).toEqual(/seedance|pixverse/.test(model) ? expect.any(Number) : null)
    expect(failed).toMatchObject({ status: 'failed', content: null, usage: null })
    expect(failed).toHaveProperty('seed')
    expect((await call('GET', failed.id)).content).toBeNull()
  })

  test('the requested seed is shown for a failed and for a cancelled task', async () => {
    const parameters = { seed: 7 }
    const ended = { content: null, usage: null, seed: 7 }
    const failed = await made({ ...wan, input: { prompt: 'A fox. sandbox:fail=InternalError' }, parameters })
    expect(failed).toMatchObject({ status: 'failed', ...ended })
    const { id } = await order({ ...wan, input: { prompt: 'A fox. sandbox:queued=60000' }, parameters })
    expect(await call('GET', id)).not.toHaveProperty('content')
    expect(await call('DELETE', id)).toMatchObject({ status: 'cancelled', ...ended })
  })

  test('a cancelled task has the vendor’s record of the cancellation', async () => {
    const { id } = await order({ ...wan, input: { prompt: 'A fox. sandbox:queued=60000' } })
    await until(async () => (await call('GET', id)).output?.task_status === 'PENDING')
    const native = { status: 'cancelled', output: { task_status: 'CANCELED' } }
    expect(await call('DELETE', id)).toMatchObject(native)
    expect(await call('GET', id)).toMatchObject(native)
    const ark = await order({ ...onePointFive, input: { prompt: 'A fox. sandbox:queued=60000' } })
    const cancelled = await call('DELETE', ark.id)
    expect(cancelled.status).toBe('cancelled')
    const row = gateway.store.db.selectFrom('task').select('record').where('id', '=', ark.id)
    expect((await row.executeTakeFirstOrThrow()).record).toMatchObject({ status: 'cancelled' })
  })

  test.each(ofEachVendor)('upstream_id is shown, and the task can be read by it: %s', async (model) => {
    const done = await made({ model, input: { prompt: 'A fox.' } })
    const row = gateway.store.db.selectFrom('task').select('upstream_id').where('id', '=', done.id)
    expect(done.upstream_id).toBe((await row.executeTakeFirstOrThrow()).upstream_id ?? 'none')
    // Veo's id contains slashes.
    expect(done.upstream_id?.includes('/operations/')).toBe(model.startsWith('veo'))
    expect(await call('GET', done.upstream_id ?? '')).toMatchObject({ id: done.id, upstream_id: done.upstream_id })
  })

  test.each([
    ['wan2.6-i2v', { img_url: image }, '9:16', undefined],
    ['wan2.5-i2v-preview', { img_url: image }, '1:1', '16:9'],
    ['wan2.7-i2v', { media: [{ type: 'first_frame', url: image }] }, '9:16', '16:9'],
    ['wan2.6-t2v', {}, '9:16', '9:16'],
    ['kling-v2-6', { image }, '9:16', undefined],
    ['viduq3-pro', { image }, '9:16', undefined],
    ['pixverse-v6', {}, '2:3', '2:3'],
    ['pixverse-v6', { image }, '2:3', undefined],
    ['minimax-hailuo-02', { image }, undefined, undefined],
    ['minimax-hailuo-02', {}, undefined, '16:9'],
    ['veo-3.1-generate-preview', {}, '9:16', '9:16'],
    ['sora-2', { image }, '9:16', '9:16'],
    ['doubao-seedance-1-5-pro-251215', {}, '3:4', '3:4'],
  ])('a video of %s from %j, asked for as %p, shows its real ratio or none', async (model, more, asked, shape) => {
    const ratio = asked === undefined ? {} : { aspect_ratio: asked }
    const { usage } = await made({ model, ...ratio, input: { prompt: 'A fox.', ...more } })
    expect([usage?.duration, usage?.aspect_ratio]).toEqual([expect.any(Number), shape])
  })
})

const final = (id: string) => ({ ...onePointFive, content: [{ type: 'draft_task', draft_task: { id } }] })

describe('the final video of a draft', () => {
  const noDraft = { code: 400, error: { param: 'content[0].draft_task.id', message: 'There is no such draft.' } }

  test('the account’s own draft becomes a final video', async () => {
    const draft = await made({ ...onePointFive, input: { prompt: 'A fox.' }, parameters: { draft: true } })
    expect(await made(final(draft.id))).toMatchObject({ code: 200, status: 'succeeded' })
  })

  test('an unknown task and another vendor’s task are refused as drafts', async () => {
    const other = await made({ ...wan, input: { prompt: 'A fox.' } })
    expect(await order(final(other.id))).toMatchObject(noDraft)
    expect(await order(final('vid_0'))).toMatchObject(noDraft)
  })
})

test('a Kling video costs the length that was ordered, although its file is longer', async () => {
  const { id, usage } = await made({ model: 'kling-v2-6', input: { prompt: 'A fox. sandbox:seconds=6' } })
  expect(usage).toMatchObject({ duration: 5 })
  const { request, entries, bill } = await writtenOf(id)
  expect(request).toMatchObject({ basis: 'vendor', usage: { video: { seconds: 5 } } })
  expect(entries).toEqual({
    [`cust:${gateway.accountId}`]: '-0.35',
    'revenue:kling-v2-6': '0.35',
    'cost:kling': '-0.35',
    'payable:kling': '0.35',
  })
  expect(bill).toEqual(['0.35'])
})

test('a fraction of a second that the vendor counts is charged as a fraction', async () => {
  const input = media(['reference_video', clip])
  const { id, usage } = await made({ model: 'wan2.7-r2v', input })
  // Five seconds were made, from a reference video of 5.02.
  expect(usage).toMatchObject({ duration: 10.02 })
  const { request, entries, bill } = await writtenOf(id)
  expect(request).toMatchObject({ basis: 'vendor', usage: { video: { seconds: 10.02 } } })
  expect(entries).toEqual({
    [`cust:${gateway.accountId}`]: '-1.002',
    'revenue:wan2.7-r2v': '1.002',
    'cost:dashscope': '-1.002',
    'payable:dashscope': '1.002',
  })
  expect(bill).toEqual(['1.002'])
})
