import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { jsonOf, until } from '../testing.ts'
import { isLost, openVideos, readMp4, staysQueued, staysRunning } from '../video/testing.ts'

const { sandbox, send, bill, clearBill, lineOf } = openVideos()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const base = `${sandbox.baseUrl('pixverse')}/openapi/v2`
const root = `${base}/video`
const keyed = { 'api-key': 'key', 'ai-trace-id': 'one-of-its-own' }
const quick = 'sandbox:queued=0 sandbox:slow=0'
const plain = { model: 'v6', prompt: quick, aspect_ratio: '16:9', duration: 5, quality: '720p' }

type Answer<Resp> = { ErrCode: number; ErrMsg: string; Resp: Resp }
type Task = { id: number; status: number; url: string; seed: number; outputWidth: number; prompt: string }

const post = (body: object, ref?: string, headers: Record<string, string> = keyed): Promise<Response> =>
  send(`${root}/text/generate`, { ...plain, ...body }, { headers, ...(ref !== undefined && { ref }) })
const create = async (body: object, ref?: string): Promise<number> =>
  (await jsonOf<Answer<{ video_id: number }>>(post(body, ref))).Resp.video_id
const get = async (id: number): Promise<Task> =>
  (await jsonOf<Answer<Task>>(send(`${root}/result/${id}`, undefined, { headers: keyed }))).Resp
const end = (id: number): Promise<Task> =>
  until(async () => {
    const task = await get(id)
    return task.status === 5 ? undefined : task
  })

test.each<[string, Record<string, string>, number]>([
  ['no key', { ...keyed, 'api-key': '' }, 10005],
  ['a bad key', { ...keyed, 'api-key': 'bad-key' }, 10005],
  ['a bearer token', { 'ai-trace-id': 'x', authorization: 'Bearer key' }, 10005],
  ['no trace id', { 'api-key': 'key' }, 400011],
])('a request with %s is refused with an error code and status 200', async (_, headers, code) => {
  for (const asked of [post({}, undefined, headers), send(`${root}/result/1`, undefined, { headers })]) {
    const response = await asked
    expect([response.status, await jsonOf<object>(response)]).toMatchObject([200, { ErrCode: code, Resp: null }])
  }
})

/** A form with one field. */
function upload(name: string, value: string | Blob): Promise<Response> {
  const body = new FormData()
  body.append(name, value)
  return fetch(`${base}/image/upload`, { method: 'POST', headers: { ...keyed, 'x-client-request-id': 'upload' }, body })
}
const imageId = async (link: string): Promise<number> =>
  (await jsonOf<Answer<{ img_id: number }>>(upload('image_url', link))).Resp.img_id
const link = 'https://h/a.png'
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const made = async (kind: string, images: object): Promise<Answer<{ video_id: number } | null>> => {
  const body = { ...plain, ...images, aspect_ratio: undefined }
  return jsonOf(send(`${root}/${kind}/generate`, body, { headers: keyed }))
}

describe('an uploaded image', () => {
  test('an image is accepted as a file or by its URL, gets an id and is not billed', async () => {
    for (const given of [upload('image', new Blob([pixel], { type: 'image/png' })), upload('image_url', link)]) {
      expect(await jsonOf<object>(given)).toMatchObject({ ErrCode: 0, Resp: { img_id: expect.any(Number) } })
    }
    expect(await bill('upload')).toEqual([])
  })

  test.each<[string, string | Blob, number]>([
    ['image', new Blob(['no picture'], { type: 'image/png' }), 500032],
    ['image_url', 'ftp://h/a.png', 400017],
    ['picture', link, 400011],
    ['image_url', `${link}?sandbox:fail=500054`, 500054],
    ['image_url', `${link}?sandbox:status=429`, 500044],
  ])('an invalid upload is refused with an error code and status 200: %s %p', async (name, value, code) => {
    const response = await upload(name, value)
    expect([response.status, await jsonOf<object>(response)]).toMatchObject([200, { ErrCode: code }])
  })

  test('an image that moderation rejects is a 500 with lower-case field names', async () => {
    const response = await upload('image_url', `${link}?sandbox:fail=500052`)
    expect([response.status, await jsonOf<object>(response)]).toMatchObject([500, { err_code: 500052, resp: '' }])
  })

  test('an image can be the first frame of a video, and another its last', async () => {
    const [first, last] = [await imageId(link), await imageId('https://h/b.png')]
    expect((await made('img', { img_id: first })).ErrCode).toBe(0)
    const { Resp } = await made('transition', { first_frame_img: first, last_frame_img: last })
    expect(await end(Resp?.video_id ?? 0)).toMatchObject({ status: 1 })
    expect((await made('img', {})).ErrCode).toBe(400011)
    expect((await made('img', { img_id: first + 1 })).ErrCode).toBe(400032)
    expect((await made('transition', { first_frame_img: first })).ErrCode).toBe(400011)
  })
})

describe('a video task', () => {
  test('a task is queued, runs and succeeds with a playable file', async () => {
    const body = { duration: 8, aspect_ratio: '9:16', generate_audio_switch: true, seed: 7, water_mark: false }
    const created = await jsonOf<Answer<{ video_id: number }>>(post(body, 'one'))
    expect<Answer<{ video_id: number }>>(created).toEqual({
      ErrCode: 0,
      ErrMsg: 'success',
      Resp: { video_id: expect.any(Number) },
    })
    expect(Number.isSafeInteger(created.Resp.video_id)).toBe(true)
    for (const prompt of [staysQueued, staysRunning]) {
      expect(await get(await create({ prompt }))).toMatchObject({ status: 5, url: '' })
    }
    const task = await end(created.Resp.video_id)
    expect(task).toMatchObject({ id: created.Resp.video_id, status: 1, seed: 7, outputWidth: 720 })
    // The link needs no key.
    const file = new Uint8Array(await (await fetch(task.url)).arrayBuffer())
    expect(readMp4(file)).toEqual({ width: 720, height: 1280, ms: 8_000, tracks: 2 })
    expect(await bill('one')).toMatchObject([{ model: 'v6', cost: '0.4' }])
  })

  test.each([
    [{}, '0.2'],
    [{ generate_audio_switch: true }, '0.25'],
    [{ quality: '360p', duration: 15 }, '0.3'],
    [{ prompt: `${quick} sandbox:seconds=9` }, '0.2'],
  ])('a task costs its ordered seconds by quality and audio: %j', async (body, cost) => {
    expect((await end(await create(body, 'priced'))).seed).toBeGreaterThan(0)
    expect(await bill('priced')).toMatchObject([{ cost }])
  })

  test.each<[object, number]>([
    [{ prompt: '' }, 400011],
    [{ prompt: 7 }, 400013],
    [{ prompt: 'x'.repeat(5_001) }, 400018],
    [{ negative_prompt: 'x'.repeat(2_049) }, 400019],
    [{ duration: undefined }, 400011],
    [{ duration: '5' }, 400013],
    [{ duration: 16 }, 400017],
    [{ duration: 2.5 }, 400017],
    [{ quality: '4k' }, 400017],
    [{ quality: undefined }, 400011],
    [{ aspect_ratio: '7:5' }, 400017],
    [{ seed: -1 }, 400017],
    [{ generate_audio_switch: 'on' }, 400013],
    [{ model: 'none' }, 400017],
    [{ prompt: 'sandbox:status=429' }, 500044],
    [{ prompt: 'sandbox:status=402' }, 500090],
  ])('a task that breaks a rule is refused with an error code and status 200: %j', async (body, code) => {
    const response = await post(body, 'refused')
    expect([response.status, await jsonOf<object>(response)]).toMatchObject([200, { ErrCode: code, Resp: null }])
    expect(await bill('refused')).toMatchObject([{ cost: '0' }])
  })

  test('an unknown task has an error code of its own', async () => {
    const asked = send(`${root}/result/123`, undefined, { headers: keyed })
    expect(await jsonOf<object>(asked)).toMatchObject({ ErrCode: 500008 })
  })

  test.each([
    ['500063', 7],
    ['99999', 8],
  ])('a failed task costs nothing and shows only whether moderation rejected it: %s', async (code, status) => {
    const id = await create({ prompt: `${quick} sandbox:fail=${code}` }, 'failed')
    expect(await end(id)).toMatchObject({ status, url: '' })
    expect(await bill('failed')).toMatchObject([{ cost: '0' }])
  })

  test('lost closes the connection without a response, but the task is billed', async () => {
    expect(await isLost(post({ prompt: `${quick} sandbox:lost` }, 'lost'))).toBe(true)
    expect(await lineOf('lost')).toMatchObject({ cost: '0.2' })
  })
})
