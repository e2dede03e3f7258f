import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { jsonOf, until } from '../testing.ts'
import { isLost, openVideos, readMp4, staysQueued, staysRunning } from '../video/testing.ts'

const { sandbox, send, bill, clearBill, lineOf } = openVideos()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const root = `${sandbox.baseUrl('openai')}/videos`
const quick = 'sandbox:queued=0 sandbox:slow=0'
const image = 'https://h/a.png'

type Video = {
  id: string
  object: string
  status: string
  progress: number
  seconds?: string
  size: string
  completed_at: number | null
  expires_at: number | null
  error: { code: string; message: string } | null
}
type Page = { object: string; data: Video[]; first_id: string | null; last_id: string | null; has_more: boolean }
type Refused = { error: { message: string; param: string | null; code: string | null } }

const post = (body: object, ref?: string): Promise<Response> =>
  send(root, { model: 'sora-2', prompt: quick, ...body }, ref === undefined ? {} : { ref })
const create = async (body: object, ref?: string): Promise<string> => (await jsonOf<Video>(post(body, ref))).id
const get = (id: string): Promise<Video> => jsonOf(send(`${root}/${id}`))
const list = (query: string): Promise<Page> => jsonOf(send(`${root}?${query}`))
const content = (id: string, headers = {}) => send(`${root}/${id}/content`, undefined, { headers })
const remove = (id: string) => send(`${root}/${id}`, undefined, { method: 'DELETE' })
const end = (id: string): Promise<Video> =>
  until(async () => {
    const video = await get(id)
    return video.status === 'completed' || video.status === 'failed' ? video : undefined
  })

test.each(['', 'Bearer bad-key'])('a request without a valid key is a 401: %p', async (authorization) => {
  const id = await create({})
  await end(id)
  const headers = { authorization }
  for (const url of [`${root}/${id}`, `${root}/${id}/content`]) {
    expect((await send(url, undefined, { headers })).status).toBe(401)
  }
  expect((await send(root, { model: 'sora-2', prompt: quick }, { headers })).status).toBe(401)
})

describe('a video', () => {
  test('a video is queued, in progress and completed', async () => {
    const waits = await create({ prompt: staysQueued })
    expect(await get(waits)).toMatchObject({ id: waits, object: 'video', status: 'queued', progress: 0, error: null })
    const runs = await create({ prompt: staysRunning })
    await until(async () => ((await get(runs)).status === 'in_progress' ? true : undefined))
    expect((await content(runs)).status).toBe(404)
    const id = await create({ seconds: '8', size: '1280x720' }, 'one')
    expect(id).toMatch(/^video_[\da-f]{32}$/)
    const done = await end(id)
    expect(done).toMatchObject({ status: 'completed', progress: 100, seconds: '8', size: '1280x720', error: null })
    expect(done.expires_at).toBeGreaterThan(done.completed_at ?? Infinity)
    const video = await content(id)
    expect(video.headers.get('content-type')).toBe('video/mp4')
    expect(readMp4(await video.bytes())).toEqual({ width: 1280, height: 720, ms: 8_000, tracks: 2 })
    // Eight seconds at ten cents.
    expect(await bill('one')).toMatchObject([{ model: 'sora-2', units: { video: { seconds: 8 } }, cost: '0.8' }])
  })

  test('a video of sora-2-pro costs more in a large size', async () => {
    for (const [size, cost] of [
      ['720x1280', '1.2'],
      ['1024x1792', '2'],
      ['1792x1024', '2'],
    ] as const) {
      await end(await create({ model: 'sora-2-pro', size, input_reference: { image_url: image } }, size))
      expect(await bill(size)).toMatchObject([{ cost }])
    }
  })

  test.each<[object, string, string]>([
    [{ prompt: '' }, 'prompt', 'empty_string'],
    [{ prompt: undefined }, 'prompt', 'missing_required_parameter'],
    [{ seconds: 8 }, 'seconds', 'invalid_type'],
    [{ seconds: '5' }, 'seconds', 'invalid_value'],
    [{ size: '1792x1024' }, 'size', 'invalid_value'],
    [{ model: 'sora-2-pro', size: '1920x1080' }, 'size', 'invalid_value'],
    [{ input_reference: image }, 'input_reference', 'invalid_value'],
    [{ input_reference: { image_url: 'AAAA' } }, 'input_reference', 'invalid_value'],
    [{ seed: 1 }, 'seed', 'unknown_parameter'],
    [{ duration: 8 }, 'duration', 'unknown_parameter'],
    [{ model: 'gpt-4o' }, 'model', 'invalid_value'],
  ])('a request that breaks a rule is refused with a 400 and costs nothing: %j', async (body, param, code) => {
    const response = await post(body, 'refused')
    expect(response.status).toBe(400)
    expect((await jsonOf<Refused>(response)).error).toMatchObject({ param, code })
    expect(await bill('refused')).toMatchObject([{ status: 400, cost: '0' }])
  })

  test('a finished video can be deleted and a queued one cannot', async () => {
    const waits = await create({ prompt: staysQueued })
    expect((await remove(waits)).status).toBe(400)
    expect((await get(waits)).status).toBe('queued')
    const id = await create({})
    await end(id)
    expect(await jsonOf<object>(remove(id))).toEqual({ id, object: 'video.deleted', deleted: true })
    for (const gone of [await send(`${root}/${id}`), await content(id), await remove(id)]) expect(gone.status).toBe(404)
  })

  test('the videos are listed in pages', async () => {
    const ids = [await create({}), await create({}), await create({})]
    const newest = await list('limit=2')
    expect(newest).toMatchObject({ object: 'list', first_id: ids[2], last_id: ids[1], has_more: true })
    expect(newest.data.map(({ id }) => id)).toEqual(ids.toReversed().slice(0, 2))
    expect((await list(`limit=1&after=${ids[1]}`)).data).toMatchObject([{ id: ids[0], object: 'video' }])
    const all = await list('order=asc&limit=100')
    expect(all.data.map(({ id }) => id).slice(-3)).toEqual(ids)
    expect(all.has_more).toBe(false)
    expect(await list(`after=${all.data[0]?.id}`)).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
    for (const bad of ['limit=101', 'limit=x', 'order=up']) expect((await send(`${root}?${bad}`)).status).toBe(400)
  })

  test('fail reports a code, no-video and expired have no content, and lost is still billed', async () => {
    const failed = await create({ prompt: `${quick} sandbox:fail=moderation_blocked` }, 'failed')
    expect((await end(failed)).error).toMatchObject({ code: 'moderation_blocked' })
    expect(await bill('failed')).toMatchObject([{ cost: '0' }])
    for (const word of ['no-video', 'expired']) {
      const id = await create({ prompt: `${quick} sandbox:${word}` })
      expect((await end(id)).status).toBe('completed')
      expect((await content(id)).status).toBe(404)
    }
    expect(await isLost(post({ prompt: `${quick} sandbox:lost` }, 'lost'))).toBe(true)
    expect(await lineOf('lost')).toMatchObject({ cost: '0.4' })
  })

  test('seconds sets the reported and billed length, and nousage omits it', async () => {
    const id = await create({ prompt: `${quick} sandbox:seconds=3` }, 'short')
    expect((await end(id)).seconds).toBe('3')
    expect(await bill('short')).toMatchObject([{ cost: '0.3' }])
    expect(await end(await create({ prompt: `${quick} sandbox:nousage` }))).not.toHaveProperty('seconds')
  })
})
