import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { jsonOf, until } from '../testing.ts'
import { isLost, openListener, openVideos, readMp4, staysQueued, staysRunning } from '../video/testing.ts'

const { sandbox, send, bill, clearBill, lineOf } = openVideos()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const root = `${sandbox.baseUrl('vidu')}/ent/v2`
const token = { authorization: 'Token key' }
const quick = 'sandbox:queued=0 sandbox:slow=0'
const image = 'https://h/a.png'

type Task = {
  id: string
  state: string
  err_code: string
  credits?: number
  payload: string
  creations: { url: string; cover_url: string }[]
}
type Sent = { kind?: string; ref?: string; headers?: Record<string, string> }

function post(body: object, { kind = 'text2video', ref, headers = token }: Sent = {}): Promise<Response> {
  const sent = { model: 'viduq3-turbo', prompt: quick, ...body }
  return send(`${root}/${kind}`, sent, { headers, ...(ref !== undefined && { ref }) })
}
const create = async (body: object, sent: Sent = {}): Promise<string> =>
  (await jsonOf<{ task_id: string }>(post(body, sent))).task_id
const get = (id: string): Promise<Task> => jsonOf(send(`${root}/tasks/${id}/creations`, undefined, { headers: token }))
const end = (id: string): Promise<Task> =>
  until(async () => {
    const task = await get(id)
    return task.state === 'success' || task.state === 'failed' ? task : undefined
  })

test.each([
  ['no token', { authorization: '' }],
  ['a bearer token', { authorization: 'Bearer key' }],
  ['a bad key', { authorization: 'Token bad-key' }],
])('a request with %s is refused', async (_, headers) => {
  const response = await post({}, { headers })
  expect(response.status).toBe(401)
  expect(await jsonOf<object>(response)).toMatchObject({ reason: 'Unauthorized', message: expect.any(String) })
})

describe('a video task', () => {
  test('a task is created, queued, processed and succeeds', async () => {
    const body = {
      prompt: quick,
      duration: 8,
      resolution: '540p',
      aspect_ratio: '9:16',
      audio: true,
      payload: 'ours',
    }
    const created = await jsonOf<{ task_id: string; state: string; credits: number }>(post(body, { ref: 'one' }))
    expect([created.state, created.credits]).toEqual(['created', 56])
    const id = created.task_id
    const waits = await create({ prompt: staysQueued })
    expect(await get(waits)).toMatchObject({ id: waits, state: 'queueing', creations: [] })
    const runs = await create({ prompt: staysRunning })
    await until(async () => ((await get(runs)).state === 'processing' ? true : undefined))
    const task = await end(id)
    expect([task.state, task.err_code, task.credits, task.payload]).toEqual(['success', '', 56, 'ours'])
    const [video] = task.creations
    const file = new Uint8Array(await (await fetch(video?.url ?? 'none')).arrayBuffer())
    expect(readMp4(file)).toEqual({ width: 540, height: 960, ms: 8_000, tracks: 2 })
    expect((await fetch(video?.cover_url ?? 'none')).headers.get('content-type')).toBe('image/png')
    // 8 seconds at 7 credits, at half a cent.
    expect(await bill('one')).toMatchObject([{ model: 'viduq3-turbo', units: { video: { tokens: 56 } }, cost: '0.28' }])
  })

  test.each<[string, object, number]>([
    ['img2video', { model: 'viduq3-pro', prompt: '', images: [image], resolution: '1080p', duration: 1 }, 24],
    ['start-end2video', { prompt: undefined, images: [image, image] }, 55],
    ['reference2video', { images: Array(7).fill(image), duration: 3 }, 30],
  ])('a task made from images has an address of its own: %s', async (kind, body, credits) => {
    const id = await create(body, { kind, ref: kind })
    expect((await end(id)).credits).toBe(credits)
    expect(await bill(kind)).toMatchObject([{ units: { video: { tokens: credits } } }])
  })

  test.each<[object, string, string]>([
    [{ prompt: '' }, 'text2video', 'prompt'],
    [{ images: [image] }, 'text2video', 'images'],
    [{ duration: 17 }, 'text2video', 'duration'],
    [{ duration: '5' }, 'text2video', 'duration'],
    [{ resolution: '360p' }, 'text2video', 'resolution'],
    [{ aspect_ratio: '21:9' }, 'text2video', 'aspect_ratio'],
    [{ audio: 'on' }, 'text2video', 'audio'],
    [{ model: 'none' }, 'text2video', 'model'],
    [{}, 'img2video', 'images'],
    [{ images: [image], aspect_ratio: '16:9' }, 'img2video', 'aspect_ratio'],
    [{ images: ['AAAA'] }, 'img2video', 'images'],
    [{ images: [image] }, 'start-end2video', 'images'],
    [{ images: [image], duration: 2 }, 'reference2video', 'duration'],
    [{ images: Array(8).fill(image) }, 'reference2video', 'images'],
  ])('a task that breaks a rule is refused with a 400 and costs nothing: %j', async (body, kind, field) => {
    const response = await post(body, { kind, ref: 'refused' })
    expect(response.status).toBe(400)
    const { reason, message } = await jsonOf<{ reason: string; message: string }>(response)
    expect([reason, message.split(': ')[0]]).toEqual(['FieldInvalid', field])
    expect(await bill('refused')).toMatchObject([{ status: 400, cost: '0' }])
  })

  test('a callback is sent for a running and an ended task, and again if it is refused', async () => {
    const { url, heard, stop } = openListener(500)
    const id = await create({ callback_url: url })
    await end(id)
    await until(async () => (await get(id), heard.length === 3 ? true : undefined))
    // A callback that was refused is sent again.
    expect(heard.map((task) => task.state)).toEqual(['processing', 'processing', 'success'])
    await stop()
  })

  test('fail ends the task with its error code, and lost bills a task without a response', async () => {
    const id = await create({ prompt: `${quick} sandbox:fail=CreationPolicyViolation` }, { ref: 'failed' })
    expect(await end(id)).toMatchObject({ state: 'failed', err_code: 'CreationPolicyViolation', creations: [] })
    expect(await bill('failed')).toMatchObject([{ cost: '0' }])
    expect(await isLost(post({ prompt: `${quick} sandbox:lost` }, { ref: 'lost' }))).toBe(true)
    expect(await lineOf('lost')).toMatchObject({ cost: '0.275' })
  })

  test('usage sets the credits of a task, and nousage omits them', async () => {
    const id = await create({ prompt: `${quick} sandbox:usage=70` }, { ref: 'dear' })
    expect((await end(id)).credits).toBe(70)
    expect(await bill('dear')).toMatchObject([{ cost: '0.35' }])
    expect(await end(await create({ prompt: `${quick} sandbox:nousage` }))).not.toHaveProperty('credits')
  })
})
