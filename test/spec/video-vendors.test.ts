import { afterAll, describe, expect, test } from 'bun:test'
import { GatewayError } from '../../src/base/errors.ts'
import { formatDollars } from '../../src/base/money.ts'
import { holdFor, priceOf } from '../../src/billing/price.ts'
import { until } from '../../src/sandbox/testing.ts'
import type { SoughtTask } from '../../src/vendors/vendor.ts'
import { clockSkewMs } from '../../src/vendors/video-news.ts'
import { askFor, clip, image, media, prompt } from '../support/video-asks.ts'
import { openShops, type Shop } from '../support/video-shops.ts'

// The simulated vendor accepts what the codec lets through and an adapter writes, and bills what we compute.

const { shopOf, send, create, look, make, isOver, billOf, stop: closeShops } = openShops()
afterAll(() => closeShops())

const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const contents = (...items: readonly object[]) => ({ input: { content: [{ type: 'text', text: 'a fox' }, ...items] } })
const video = { type: 'video_url', video_url: { url: clip }, role: 'reference_video' }

describe('a video that is made', () => {
  test.each<[string, object]>([
    ['wan2.5-t2v-preview', { input: prompt, resolution: '480p', duration: 10, aspect_ratio: '1:1' }],
    ['wan2.5-i2v-preview', { input: { img_url: image }, resolution: '480p' }],
    ['wan2.6-t2v', { input: prompt, resolution: '1080p', aspect_ratio: '4:3', parameters: { shot_type: 'multi' } }],
    ['wan2.6-i2v', { input: { ...prompt, img_url: image }, parameters: { size: '1920*1080' } }],
    ['wan2.6-i2v-flash', { input: { ...prompt, img_url: image }, parameters: { audio: false } }],
    ['wan2.6-i2v-flash', { input: { ...prompt, img_url: image } }],
    ['wan2.6-r2v', { input: { ...prompt, reference_urls: [image, clip] }, duration: 10 }],
    ['wan2.6-r2v-flash', { input: { ...prompt, reference_urls: [image] }, parameters: { audio: false } }],
    ['wan2.7-t2v', { input: prompt, aspect_ratio: '3:4', parameters: { audio: true, watermark: true } }],
    ['wan2.7-t2v-2026-04-25', { input: prompt, duration: 15 }],
    ['wan2.7-i2v', { input: media(['first_frame'], ['last_frame']) }],
    ['wan2.7-r2v', { input: media(['reference_image'], ['reference_video', clip]), aspect_ratio: '9:16' }],
    ['wan3.0-video', { input: prompt, duration: 30, aspect_ratio: '21:9' }],
    ['wan3.0-video', { input: { img_url: image }, duration: -1 }],
    ['wan3.0-video', { input: media(['reference_image'], ['reference_video', clip]), parameters: { audio: false } }],
    ['doubao-seedance-2-0-260128', { input: prompt, resolution: '4k', aspect_ratio: '21:9' }],
    ['doubao-seedance-2-0-260128', { ...contents(video), duration: 4 }],
    ['doubao-seedance-2-0-260128', { input: { prompt: 'a fox --rs 1080p --dur 6' } }],
    ['doubao-seedance-2-0-fast-260128', { input: media(['first_frame'], ['last_frame']), duration: -1 }],
    ['doubao-seedance-2-0-mini-260615', contents({ type: 'image_url', image_url: { url: image } })],
    ['doubao-seedance-1-5-pro-251215', { input: prompt }],
    ['doubao-seedance-1-5-pro-251215', { input: prompt, parameters: { generate_audio: false, draft: true, seed: 5 } }],
    ['doubao-seedance-1-0-pro-250528', { input: prompt, duration: 10, aspect_ratio: '3:4' }],
    ['veo-3.1-generate-preview', { input: media(['first_frame', pixel]), duration: 4 }],
    ['veo-3.1-generate-preview', { input: media(['reference_image', pixel]), resolution: '4k' }],
    ['veo-2.0-generate-001', { input: { ...prompt, negative_prompt: 'dark' }, parameters: { seed: 1 } }],
    ['kling-v2-5-turbo', { input: prompt, duration: 10, aspect_ratio: '9:16' }],
    ['kling-v2-6', { input: { ...prompt, image, negative_prompt: 'dark' }, parameters: { sound: 'on' } }],
    ['kling-v2-6', { input: media(['first_frame', pixel]) }],
    ['minimax-hailuo-02', { input: prompt, duration: 10, parameters: { prompt_optimizer: false } }],
    ['minimax-hailuo-02', { input: media(['first_frame'], ['last_frame', pixel]), resolution: '1080p' }],
    ['minimax-hailuo-02', { input: { first_frame_image: image }, resolution: '768P' }],
    ['pixverse-v6', { input: prompt, duration: 15, resolution: '1080p', aspect_ratio: '21:9' }],
    [
      'pixverse-v6',
      { input: { ...prompt, negative_prompt: 'dark' }, resolution: '360p', parameters: { audio: false } },
    ],
    ['pixverse-v6', { input: media(['first_frame', pixel]), resolution: '360p' }],
    ['pixverse-v6', { input: media(['first_frame'], ['last_frame']), parameters: { audio: false } }],
    ['pixverse-v6', { input: prompt, duration: 1, resolution: '540p', parameters: { seed: 3, watermark: true } }],
    ['gen4-turbo', { input: { image }, duration: 10, aspect_ratio: '21:9' }],
    ['gen4-turbo', { input: media(['first_frame', pixel]), parameters: { ratio: '832:1104', seed: 4 } }],
    ['gen4.5', { input: prompt, duration: 2, aspect_ratio: '9:16' }],
    ['gen4.5', { input: media(['first_frame']), aspect_ratio: '1:1' }],
    ['viduq3-turbo', { input: prompt, duration: 16, aspect_ratio: '3:4', parameters: { audio: false } }],
    ['viduq3-turbo', { input: media(['reference_image'], ['reference_image', pixel]), resolution: '540p' }],
    ['viduq3-turbo', { input: media(['first_frame']), resolution: '1080p' }],
    ['viduq3-pro', { input: media(['first_frame', pixel], ['last_frame']), duration: 1, parameters: { seed: 3 } }],
    ['sora-2', { input: media(['first_frame', pixel]), duration: 12, aspect_ratio: '9:16' }],
    ['sora-2-pro', { input: media(['first_frame']), duration: 8, resolution: '1792x1024' }],
  ])('%s %j succeeds, and our cost equals the vendor’s bill', async (id, body) => {
    const { shop, ask, news } = await make(id, body)
    expect(news).toMatchObject({ state: 'succeeded', result: { videoUrl: expect.stringMatching(/^http|^\/videos\//) } })
    expect(news.error).toBeUndefined()
    const { madeAt } = news.result ?? {}
    if (/^wan|seedance/.test(id)) expect(Math.abs(Date.now() - (madeAt ?? 0))).toBeLessThan(60_000)
    else expect(madeAt).toBeUndefined()
    expect(news.used?.video).toMatchObject({ resolution: ask.resolution, sound: ask.sound })
    const { costs } = shop.model
    const cost = priceOf(news.used ?? {}, costs)
    expect<string | undefined>(formatDollars(cost)).toBe(await billOf(shop))
    expect(cost).toBeGreaterThan(0n)
    expect(cost).toBeLessThanOrEqual(holdFor(ask.bound, costs))
  })

  test('the seconds that were made are charged, not those asked for', async () => {
    for (const id of ['wan2.7-t2v', 'doubao-seedance-2-0-260128', 'sora-2']) {
      const { shop, news } = await make(id, { input: { prompt: 'a fox sandbox:seconds=4' } })
      expect(news.used?.video?.seconds).toBe(4)
      expect<string | undefined>(formatDollars(priceOf(news.used ?? {}, shop.model.costs))).toBe(await billOf(shop))
    }
  })

  test('a video that the vendor bills at zero costs nothing', async () => {
    for (const id of ['wan2.6-t2v', 'doubao-seedance-2-0-260128', 'kling-v2-6', 'viduq3-turbo', 'sora-2']) {
      const { shop, news } = await make(id, { input: { prompt: 'a fox sandbox:zero' } })
      expect(news.used).toBeDefined()
      expect(formatDollars(priceOf(news.used ?? {}, shop.model.costs))).toBe('0')
      expect(await billOf(shop)).toBe('0')
    }
  })

  test('the final video of a known draft is made and billed by the draft’s length', async () => {
    const model = 'doubao-seedance-1-5-pro-251215'
    const draft = await make(model, { input: prompt, duration: 6, parameters: { draft: true } })
    const shop = shopOf(model)
    const ask = askFor(model, { input: { content: [{ type: 'draft_task', draft_task: { id: 'task_1' } }] } })
    expect(() => shop.adapter.create(ask, shop.context)).toThrow(GatewayError)
    const known = { ...shop, context: { ...shop.context, draftUpstreamId: draft.task } }
    const task = await create(known, ask)
    const news = await until(async () => {
      const found = await look(known, ask, task)
      return isOver(found) ? found : undefined
    })
    expect(news).toMatchObject({ state: 'succeeded', used: { video: { seconds: 6, resolution: '720p' } } })
    expect<string | undefined>(formatDollars(priceOf(news.used ?? {}, shop.model.costs))).toBe(await billOf(shop))
  })
})

const all = [
  'wan2.6-t2v',
  'doubao-seedance-2-0-260128',
  'veo-3.1-generate-preview',
  'kling-v2-6',
  'gen4.5',
  'viduq3-turbo',
  'minimax-hailuo-02',
  'pixverse-v6',
  'sora-2',
]

describe('other outcomes of a task', () => {
  test.each(all)('%s: a failed task has a code and a message and costs nothing', async (id) => {
    const code =
      { 'wan2.6-t2v': 'DataInspectionFailed', 'kling-v2-6': '1301', 'minimax-hailuo-02': '1027' }[id] ?? 'INTERNAL'
    const { shop, news } = await make(id, { input: { prompt: `a fox sandbox:fail=${code}` } })
    expect(news).toMatchObject({ state: 'failed', error: { code: expect.any(String), message: expect.any(String) } })
    expect(news.error?.message).not.toBe('')
    expect([news.used, news.result, await billOf(shop)]).toEqual([undefined, undefined, '0'])
  })

  test.each(all)('%s: a task that the vendor does not know is lost', async (id) => {
    const { news } = await make(id, { input: { prompt: 'a fox sandbox:vanish' } })
    expect(news.state).toBe('lost')
  })

  // Sora’s record never says where its video is: a missing one is noticed when it is fetched.
  test.each(all.filter((id) => id !== 'sora-2'))('%s: a task that ends without a video has no result', async (id) => {
    const { news } = await make(id, { input: { prompt: 'a fox sandbox:no-video' } })
    expect(news.result).toBeUndefined()
    if (id.startsWith('veo')) expect(news).toMatchObject({ state: 'failed', error: { code: 'upstream_no_output' } })
    else expect(news.state).toBe('succeeded')
  })

  test.each(all)('%s: a poll that fails throws and says nothing about the task', async (id) => {
    const shop = shopOf(id)
    const ask = askFor(id, { input: { prompt: 'a fox sandbox:poll-status=500' } })
    const task = await create(shop, ask)
    expect(look(shop, ask, task)).rejects.toThrow(GatewayError)
  })

  test.each(all.filter((id) => !id.startsWith('veo')))('%s: an unknown state is reported as is', async (id) => {
    const shop = shopOf(id)
    const ask = askFor(id, { input: { prompt: 'a fox sandbox:odd-state=DREAMING sandbox:slow=2000' } })
    const task = await create(shop, ask)
    const odd = await until(async () => {
      const found = await look(shop, ask, task)
      return found.state === 'unknown-word' ? found : undefined
    })
    expect(odd.word).toBe('DREAMING')
  })

  test('an expired Seedance task is reported as expired', async () => {
    const { news } = await make('doubao-seedance-2-0-260128', {
      input: { prompt: 'a fox sandbox:stuck sandbox:expire' },
    })
    expect(news.state).toBe('expired')
  })

  test('a video blocked by Veo’s filters fails with content_filtered', async () => {
    const { news } = await make('veo-3.1-generate-preview', { input: { prompt: 'a fox sandbox:blocked' } })
    expect(news).toMatchObject({ state: 'failed', error: { code: 'content_filtered' } })
  })

  test.each(all)('%s: an error body under a 200 is read as a 500', async (id) => {
    const { adapter, context } = shopOf(id)
    const response = await send(adapter.create(askFor(id, { input: { prompt: 'a fox sandbox:error200' } }), context))
    expect(response.status).toBe(200)
    expect(adapter.readCreated(response)).toEqual({ errorStatus: 500 })
  })
})

/** Whether a task may have been begun, and what the vendor's table makes of it. */
const explained = (id: string, body: object) => {
  const { adapter, channel } = shopOf(id)
  const text = JSON.stringify(body)
  const created = adapter.readCreated({ header: () => null, body: new TextEncoder().encode(text) })
  if (typeof created === 'string') return created
  const response = { status: created.errorStatus, retryAfterSeconds: undefined, body: text }
  const { error, retryable, restCredentialSeconds } = channel.vendor.explain(response, {
    baseUrl: 'https://vendor.example',
    credential: 'a-key',
  })
  return [created.errorStatus >= 500, error.kind, retryable, restCredentialSeconds !== undefined]
}

describe('the body of a creation under a 200', () => {
  const [refused, tooMany, noMoney, failed] = [
    [false, 'upstream-rejected', false, false],
    [false, 'too-many', true, true],
    [false, 'upstream-failed', true, true],
    [true, 'upstream-failed', true, false],
  ]

  test.each<[string, object, unknown]>([
    ['kling-v2-6', { code: 1102, message: 'balance' }, noMoney],
    ['kling-v2-6', { code: 1302, message: 'too fast' }, tooMany],
    ['kling-v2-6', { code: 1301, message: 'not allowed' }, refused],
    ['kling-v2-6', { code: 5000, message: 'internal' }, failed],
    ['kling-v2-6', { code: 0, data: { task_id: 'k-1' } }, 'k-1'],
    ['minimax-hailuo-02', { task_id: '', base_resp: { status_code: 1002, status_msg: 'rate' } }, tooMany],
    ['minimax-hailuo-02', { base_resp: { status_code: 1004, status_msg: 'key' } }, noMoney],
    ['minimax-hailuo-02', { base_resp: { status_code: 1008, status_msg: 'balance' } }, noMoney],
    ['minimax-hailuo-02', { base_resp: { status_code: 1026, status_msg: 'no' } }, refused],
    ['minimax-hailuo-02', { base_resp: { status_code: 2013, status_msg: 'no' } }, refused],
    ['minimax-hailuo-02', { base_resp: { status_code: 1000, status_msg: 'sorry' } }, failed],
    ['minimax-hailuo-02', { task_id: '7', base_resp: { status_code: 0, status_msg: 'success' } }, '7'],
    ['wan2.6-t2v', { code: 'Arrearage', message: 'overdue' }, noMoney],
    ['wan2.6-t2v', { code: 'Throttling.RateQuota', message: 'too fast' }, tooMany],
    ['wan2.6-t2v', { code: 'InvalidParameter', message: 'size' }, refused],
    ['wan2.6-t2v', { code: 'InternalError', message: 'sorry' }, failed],
    ['wan2.6-t2v', { code: '', output: { task_id: 'w-1' } }, 'w-1'],
    ['doubao-seedance-2-0-260128', { error: { code: 'AccountOverdueError', type: 'Forbidden', message: '' } }, noMoney],
    ['doubao-seedance-2-0-260128', { error: { code: 'ServerOverloaded', type: 'TooManyRequests' } }, tooMany],
    ['doubao-seedance-2-0-260128', { error: { code: 'InvalidParameter', type: 'BadRequest', message: 'x' } }, refused],
    ['doubao-seedance-2-0-260128', { error: { code: 'InternalServiceError', message: 'sorry' } }, failed],
    ['veo-3.1-generate-preview', { error: { code: 403, message: 'no', status: 'PERMISSION_DENIED' } }, noMoney],
    ['veo-3.1-generate-preview', { error: { code: 400, message: 'no', status: 'INVALID_ARGUMENT' } }, refused],
    ['veo-3.1-generate-preview', { error: { code: 500, message: 'no', status: 'INTERNAL' } }, failed],
    ['gen4.5', { error: 'An unexpected error occurred.' }, failed],
    ['sora-2', { error: { message: 'sorry', type: 'server_error', code: null } }, failed],
    ['sora-2', { id: 'video_1', object: 'video', status: 'queued', error: null }, 'video_1'],
    ['viduq3-turbo', { reason: 'CreditInsufficient', message: 'no credits' }, noMoney],
    ['viduq3-turbo', { err_code: 'SystemThrottling' }, tooMany],
    ['viduq3-turbo', { reason: 'FieldInvalid', message: 'duration' }, refused],
    ['viduq3-turbo', { reason: 'SomethingNew', message: 'sorry' }, failed],
    ['viduq3-turbo', { task_id: '877436584', state: 'created', credits: 55 }, '877436584'],
    ['pixverse-v6', { ErrCode: 500090, ErrMsg: 'balance', Resp: null }, noMoney],
    ['pixverse-v6', { ErrCode: 10005, ErrMsg: 'not login', Resp: { video_id: 0 } }, noMoney],
    ['pixverse-v6', { ErrCode: 500044, ErrMsg: 'running', Resp: null }, tooMany],
    ['pixverse-v6', { ErrCode: 500063, ErrMsg: 'sensitive', Resp: null }, refused],
    ['pixverse-v6', { ErrCode: 400017, ErrMsg: 'invalid param', Resp: null }, refused],
    ['pixverse-v6', { ErrCode: 99999, ErrMsg: 'sorry', Resp: null }, failed],
    ['pixverse-v6', { ErrCode: 0, ErrMsg: 'success', Resp: { video_id: 343252978602905 } }, '343252978602905'],
    ['gen4.5', { id: '17f20503-6c24-4c16-946b-35dbbce2af2f' }, '17f20503-6c24-4c16-946b-35dbbce2af2f'],
  ])('%s %j is read as the task id or the error in it', (id, body, expected) => {
    expect(explained(id, body)).toEqual(expected as string)
  })

  test.each(all)('%s: a body that is neither an error nor a task throws', (id) => {
    expect(() => explained(id, {})).toThrow(GatewayError)
  })
})

describe('cancelling at the vendor', () => {
  test.each(['wan2.6-t2v', 'doubao-seedance-2-0-260128'])('%s: only a queued task is cancelled', async (id) => {
    const shop = shopOf(id)
    const { adapter, context } = shop
    const stop = async (task: string) => {
      const response = adapter.cancel && (await send(adapter.cancel.call(task, context)))
      return response && adapter.cancel?.read(response)
    }
    const ask = askFor(id, { input: { prompt: 'a fox sandbox:queued=5000' } })
    const waiting = await create(shop, ask)
    expect(await stop(waiting)).toBe(true)
    expect(await look(shop, ask, waiting)).toMatchObject({ state: 'cancelled' })
    const running = await create(shop, askFor(id, { input: { prompt: 'a fox sandbox:queued=0 sandbox:stuck' } }))
    await until(async () => ((await look(shop, ask, running)).state === 'running' ? true : undefined))
    expect(await stop(running)).toBe(false)
  })
})

test('Runway no longer knows a task that it cancelled', async () => {
  const shop = shopOf('gen4.5')
  const { adapter, context } = shop
  const stop = async (task: string) => {
    const response = adapter.cancel && (await send(adapter.cancel.call(task, context)))
    return response && adapter.cancel?.read(response)
  }
  const ask = askFor('gen4.5', { input: { prompt: 'a fox sandbox:queued=5000' } })
  const waiting = await create(shop, ask)
  expect(await stop(waiting)).toBe(true)
  expect((await look(shop, ask, waiting)).state).toBe('lost')
  expect(await billOf(shop)).toBe('0')
  expect(await stop(waiting)).toBe(false)
})

async function find({ adapter, context }: Shop, sought: SoughtTask) {
  const response = adapter.find && (await send(adapter.find.call(sought, context)))
  return response && adapter.find?.read(response, sought)
}

describe('a task whose creation is in doubt', () => {
  test('Kling finds a task by our reference', async () => {
    const shop = shopOf('kling-v2-6')
    const sought = { ref: shop.context.ref, upstreamModel: 'kling-v2-6', kind: 'i2v', sentAt: Date.now() } as const
    expect(await find(shop, sought)).toBe('absent')
    const task = await create(shop, askFor('kling-v2-6', { input: { image } }))
    expect(await find(shop, sought)).toEqual({ upstreamId: task })
  })

  const listed = ['wan2.6-t2v', 'doubao-seedance-2-0-260128', 'sora-2']
  test.each(listed)('%s: the vendor’s list can show that a task is absent, but not which one is ours', async (id) => {
    const shop = shopOf(id)
    // Later than clocks can differ.
    const later = Date.now() + 2 * clockSkewMs
    const sought = { ref: 'att_x', upstreamModel: id, kind: 't2v', sentAt: later } as const
    expect(await find(shop, sought)).toBe('absent')
    const task = await create(shop, askFor(id, { input: prompt }))
    // The list does not say whose the other task is.
    expect(await find(shop, { ...sought, sentAt: Date.now() })).toBe('unsure')
    expect(task).not.toBe('')
  })

  const sentAt = 1_794_739_772_000
  const read = (id: string, list: object, knownIds: readonly string[] = []) => {
    const body = new TextEncoder().encode(JSON.stringify(list))
    const sought = { ref: 'att_x', upstreamModel: id, kind: 't2v', sentAt, knownIds: new Set(knownIds) } as const
    return shopOf(id).adapter.find?.read({ status: 200, header: () => null, body }, sought)
  }

  test('a clock that is nine minutes off does not make a task absent', () => {
    const minutes = (count: number) => ({ data: [{ task_id: 't', gmt_create: sentAt - count * 60_000 }], total: 1 })
    expect(read('wan2.6-t2v', minutes(9))).toBe('unsure')
    expect(read('wan2.6-t2v', minutes(11))).toBe('absent')
    const { adapter, context } = shopOf('wan2.6-t2v')
    const url = adapter.find?.call({ ref: '', upstreamModel: 'm', kind: 't2v', sentAt }, context).url ?? ''
    // Eight hours ahead, ten minutes before.
    const from = new Date(sentAt + (8 * 60 - 10) * 60_000).toISOString().replaceAll(/\D/g, '').slice(0, 14)
    expect(new URL(url).searchParams.get('start_time')).toBe(from)
  })

  test('a Seedance page proves absence only if it is newest-first and reaches back far enough', () => {
    const seconds = sentAt / 1000
    const page = (times: readonly number[], total: number) => ({
      items: times.map((time, at) => ({ id: `cgt-${at}`, created_at: seconds + time })),
      total,
    })
    const known = ['cgt-0', 'cgt-1', 'cgt-2']
    const seedance = 'doubao-seedance-2-0-260128'
    expect(read(seedance, page([5, -30, -700], 900), known)).toBe('absent')
    expect(read(seedance, page([5, -30, -599], 900), known)).toBe('unsure')
    expect(read(seedance, page([-9_000, -8_000, -7_000], 900), known)).toBe('unsure')
    expect(read(seedance, page([5, -8_000, -7_000], 900), known)).toBe('unsure')
    expect(read(seedance, page([], 900))).toBe('unsure')
    // The whole list, in whichever order.
    expect(read(seedance, page([-9_000, -8_000, 5], 3), known)).toBe('absent')
    expect(read(seedance, page([-9_000, -8_000, 5], 3))).toBe('unsure')
  })

  const soraPage = (times: readonly number[], more: unknown) => ({
    data: times.map((time, at) => ({ id: `video_${at}`, created_at: sentAt / 1000 + time })),
    has_more: more,
  })
  test('a Sora page proves absence by the same rules, with has_more instead of a total', () => {
    const known = ['video_0', 'video_1', 'video_2']
    expect(read('sora-2', soraPage([5, -30, -700], true), known)).toBe('absent')
    expect(read('sora-2', soraPage([5, -30, -700], true), ['video_1', 'video_2'])).toBe('unsure')
    expect(read('sora-2', soraPage([5, -30, -599], true), known)).toBe('unsure')
    expect(read('sora-2', soraPage([-9_000, -8_000, -7_000], true), known)).toBe('unsure')
    expect(read('sora-2', soraPage([], true))).toBe('unsure')
    expect(read('sora-2', soraPage([], undefined))).toBe('unsure')
    expect(read('sora-2', soraPage([-9_000, -8_000, 5], false), known)).toBe('absent')
    expect(read('sora-2', { has_more: false })).toBe('unsure')
  })
})
