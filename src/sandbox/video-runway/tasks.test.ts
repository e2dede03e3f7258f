import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { jsonOf, until } from '../testing.ts'
import { isLost, openVideos, readMp4, staysQueued, staysRunning } from '../video/testing.ts'

const { sandbox, send, bill, clearBill, lineOf } = openVideos()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const root = `${sandbox.baseUrl('runway')}/v1`
const version = { 'x-runway-version': '2024-11-06' }
const quick = 'sandbox:queued=0 sandbox:slow=0'
const image = 'https://h/a.png'

type Task = {
  id: string
  status: string
  createdAt: string
  progress?: number
  failure?: string
  failureCode?: string
  output?: string[]
}

type Sent = { kind?: string; ref?: string; headers?: Record<string, string> }

function post(body: object, { kind = 'text_to_video', ref, headers = version }: Sent = {}): Promise<Response> {
  const usual = kind === 'text_to_video' ? { model: 'gen4.5' } : { model: 'gen4_turbo' }
  const sent = { ...usual, promptText: quick, ratio: '1280:720', duration: 5, ...body }
  return send(`${root}/${kind}`, sent, { headers, ...(ref !== undefined && { ref }) })
}
const create = async (body: object, sent: Sent = {}): Promise<string> => (await jsonOf<Task>(post(body, sent))).id
const call = (id: string, method = 'GET') => send(`${root}/tasks/${id}`, undefined, { method, headers: version })
const get = (id: string): Promise<Task> => jsonOf(call(id))
const end = (id: string): Promise<Task> =>
  until(async () => {
    const task = await get(id)
    return task.status === 'SUCCEEDED' || task.status === 'FAILED' ? task : undefined
  })

test.each([
  ['no key', { ...version, authorization: '' }, 401],
  ['a bad key', { ...version, authorization: 'Bearer bad-key' }, 401],
  ['no version', {}, 400],
  ['an unknown version', { 'x-runway-version': '2024-09-13' }, 400],
])('a request with %s is refused', async (_, headers, status) => {
  const response = await post({}, { headers })
  expect(response.status).toBe(status)
  expect(await jsonOf<object>(response)).toEqual({ error: expect.any(String) })
})

describe('a video task', () => {
  test('a task is pending, runs and succeeds with a link', async () => {
    const waits = await create({ promptText: staysQueued })
    expect(await get(waits)).toEqual({ id: waits, status: 'PENDING', createdAt: expect.any(String) })
    const runs = await create({ promptText: staysRunning })
    await until(async () => ((await get(runs)).status === 'RUNNING' ? true : undefined))
    expect(await get(runs)).toMatchObject({ progress: expect.any(Number) })
    const id = await create({ ratio: '720:1280', duration: 10 }, { ref: 'one' })
    const task = await end(id)
    expect(task).toMatchObject({ id, status: 'SUCCEEDED' })
    const file = new Uint8Array(await (await fetch(task.output?.[0] ?? '')).arrayBuffer())
    expect(readMp4(file)).toEqual({ width: 720, height: 1280, ms: 10_000, tracks: 1 })
    // Ten seconds at 5 cents.
    expect(await bill('one')).toMatchObject([{ model: 'gen4.5', units: { video: { seconds: 10 } }, cost: '0.5' }])
  })

  test('image_to_video and video_to_video create tasks at addresses of their own', async () => {
    await end(await create({ promptImage: image, ratio: '1584:672' }, { kind: 'image_to_video', ref: 'picture' }))
    expect(await bill('picture')).toMatchObject([{ cost: '0.25' }])
    const changed = { model: 'gen4_aleph', ratio: undefined, duration: undefined, videoUri: 'https://h/a.mp4' }
    await end(await create(changed, { kind: 'video_to_video', ref: 'film' }))
    expect(await bill('film')).toMatchObject([{ units: { video: { seconds: 5 } }, cost: '0.25' }])
  })

  test('a task is billed by its ordered seconds, whatever the length of the file', async () => {
    const { output } = await end(await create({ promptText: `${quick} sandbox:seconds=3` }, { ref: 'short' }))
    const file = new Uint8Array(await (await fetch(output?.[0] ?? '')).arrayBuffer())
    expect(readMp4(file).ms).toBe(3_000)
    expect(await bill('short')).toMatchObject([{ cost: '0.25' }])
  })

  test.each<[object, string, string]>([
    [{ promptText: '' }, 'text_to_video', 'promptText'],
    [{ promptText: 'x'.repeat(1_001) }, 'text_to_video', 'promptText'],
    [{ ratio: '16:9' }, 'text_to_video', 'ratio'],
    [{ ratio: '960:960' }, 'text_to_video', 'ratio'],
    [{ duration: 11 }, 'text_to_video', 'duration'],
    [{ duration: '5' }, 'text_to_video', 'duration'],
    [{ seed: -1 }, 'text_to_video', 'seed'],
    [{ promptImage: image }, 'text_to_video', 'promptImage'],
    [{ model: 'none' }, 'text_to_video', 'model'],
    [{}, 'image_to_video', 'promptImage'],
    [{ promptImage: 'http://h/a.png' }, 'image_to_video', 'promptImage'],
    [{ promptImage: [{ uri: image, position: 'last' }] }, 'image_to_video', 'promptImage'],
    [{ model: 'gen4_aleph', duration: undefined }, 'video_to_video', 'videoUri'],
    [{ model: 'gen4_aleph', videoUri: 'https://h/a.mp4' }, 'video_to_video', 'duration'],
  ])('a task that breaks a rule is refused with a 400 and costs nothing: %j', async (body, kind, field) => {
    const response = await post(body, { kind, ref: 'refused' })
    expect(response.status).toBe(400)
    expect((await jsonOf<{ error: string }>(response)).error).toContain(`${field}: `)
    expect(await bill('refused')).toMatchObject([{ status: 400, cost: '0' }])
  })

  test.each(['sandbox:queued=60000', 'sandbox:queued=0 sandbox:stuck'])(
    'an unfinished task can be cancelled, costs nothing and is then a 404: %s',
    async (promptText) => {
      const id = await create({ promptText }, { ref: promptText.length.toString() })
      if (promptText.includes('stuck'))
        await until(async () => ((await get(id)).status === 'RUNNING' ? true : undefined))
      expect((await call(id, 'DELETE')).status).toBe(204)
      expect([(await call(id)).status, (await call(id, 'DELETE')).status]).toEqual([404, 404])
      expect(await bill(promptText.length.toString())).toMatchObject([{ cost: '0' }])
    },
  )

  test('a finished task can be deleted and stays on the bill', async () => {
    const id = await create({}, { ref: 'deleted' })
    await end(id)
    expect((await call(id, 'DELETE')).status).toBe(204)
    expect((await call(id)).status).toBe(404)
    expect(await bill('deleted')).toMatchObject([{ cost: '0.25' }])
  })

  test('fail ends the task with its failure code, and lost bills a task without a response', async () => {
    const id = await create({ promptText: `${quick} sandbox:fail=SAFETY.INPUT.TEXT` }, { ref: 'failed' })
    expect(await end(id)).toMatchObject({ status: 'FAILED', failureCode: 'SAFETY.INPUT.TEXT' })
    expect(await bill('failed')).toMatchObject([{ cost: '0' }])
    expect(await isLost(post({ promptText: `${quick} sandbox:lost` }, { ref: 'lost' }))).toBe(true)
    expect(await lineOf('lost')).toMatchObject({ cost: '0.25' })
  })
})
