import { createHmac } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { jsonOf, until } from '../testing.ts'
import { isLost, openListener, openVideos, readMp4, staysRunning } from '../video/testing.ts'

const { sandbox, send, bill, clearBill, lineOf } = openVideos()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const root = `${sandbox.baseUrl('kling')}/v1/videos`
const quick = 'sandbox:queued=0 sandbox:slow=0'

type Claims = { iss?: string; exp?: number; nbf?: number }
type Task = {
  task_id: string
  task_status: string
  task_status_msg?: string
  task_info: { external_task_id: string }
  task_result?: { videos: { url: string; duration: string }[] }
  final_unit_deduction?: string
}
type Answer<T> = { code: number; message: string; request_id: string; data: T }

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function bearer(claims: Claims = {}, secret = 'access-secret'): Record<string, string> {
  const now = Math.floor(Date.now() / 1_000)
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iss: 'access', exp: now + 1_800, nbf: now - 5, ...claims })}`
  return { authorization: `Bearer ${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}` }
}

type Sent = { kind?: string; ref?: string; headers?: Record<string, string> }

function post(body: object, { kind = 'text2video', ref, headers = bearer() }: Sent = {}): Promise<Response> {
  const sent = { model_name: 'kling-v2-6', prompt: quick, ...body }
  return send(`${root}/${kind}`, sent, { headers, ...(ref !== undefined && { ref }) })
}
const create = async (body: object, sent: Sent = {}): Promise<string> =>
  (await jsonOf<Answer<Task>>(post(body, sent))).data.task_id
const get = async (id: string, kind = 'text2video'): Promise<Answer<Task>> =>
  jsonOf(send(`${root}/${kind}/${id}`, undefined, { headers: bearer() }))
const end = (id: string, kind?: string): Promise<Task> =>
  until(async () => {
    const { data } = await get(id, kind)
    return data.task_status === 'succeed' || data.task_status === 'failed' ? data : undefined
  })

describe('a signed token', () => {
  const now = Math.floor(Date.now() / 1_000)
  test.each([
    ['no header', { authorization: '' }, 1001],
    ['a plain key', { authorization: 'Bearer key' }, 1002],
    ['signed with another secret', bearer({}, 'access'), 1002],
    ['not yet valid', bearer({ nbf: now + 600 }), 1003],
    ['expired', bearer({ exp: now - 1 }), 1004],
    ['issued by a bad key', bearer({ iss: 'bad-key' }), 1000],
  ])('a token is refused with a 401: %s', async (_, headers, code) => {
    const response = await post({}, { headers })
    expect(response.status).toBe(401)
    expect(await jsonOf<object>(response)).toMatchObject({ code, request_id: expect.any(String) })
  })
})

describe('a video task', () => {
  test('a task is submitted, processed and succeeds', async () => {
    const body = {
      prompt: quick,
      mode: 'pro',
      sound: 'on',
      aspect_ratio: '9:16',
      duration: '10',
    }
    const created = await jsonOf<Answer<Task>>(post(body, { ref: 'one' }))
    const id = created.data.task_id
    expect(created).toMatchObject({ code: 0, data: { task_id: expect.any(String), task_status: 'submitted' } })
    const runs = await create({ prompt: staysRunning })
    await until(async () => ((await get(runs)).data.task_status === 'processing' ? true : undefined))
    const task = await end(id)
    expect(task).toMatchObject({ task_status: 'succeed', final_unit_deduction: '14' })
    const [video] = task.task_result?.videos ?? []
    expect(video?.duration).toBe('10.1')
    const file = new Uint8Array(await (await fetch(video?.url ?? '')).arrayBuffer())
    expect(readMp4(file)).toEqual({ width: 1080, height: 1920, ms: 10_125, tracks: 2 })
    // 10 seconds in pro mode with audio, at 14 cents.
    expect(await bill('one')).toMatchObject([{ model: 'kling-v2-6', cost: '1.4' }])
  })

  test('a task made from an image is found under image2video only', async () => {
    const id = await create({ prompt: '', image: 'https://h/a.png' }, { kind: 'image2video', ref: 'image' })
    expect((await get(id)).code).toBe(1203)
    expect(await end(id, 'image2video')).toMatchObject({ task_status: 'succeed' })
    expect(await bill('image')).toMatchObject([{ cost: '0.2' }])
  })

  test('a task is found by its external id, which must be unique', async () => {
    const id = await create({ external_task_id: 'ours-1' })
    expect((await get('ours-1')).data).toMatchObject({ task_id: id, task_info: { external_task_id: 'ours-1' } })
    await create({})
    expect(await get('')).toMatchObject({ code: 1203 })
    expect(await jsonOf<object>(post({ external_task_id: 'ours-1' }))).toMatchObject({ code: 1201 })
  })

  test.each([
    [{ prompt: '' }, 'text2video', 1201],
    [{ duration: 5 }, 'text2video', 1201],
    [{ duration: '7' }, 'text2video', 1201],
    [{ mode: 'best' }, 'text2video', 1201],
    [{ cfg_scale: 2 }, 'text2video', 1201],
    [{ model_name: 'none' }, 'text2video', 1203],
    [{}, 'image2video', 1201],
    [{ image: 'data:image/png;base64,AAAA' }, 'image2video', 1201],
  ])('a task that breaks a rule is refused and costs nothing: %j', async (body, kind, code) => {
    expect(await jsonOf<object>(post(body, { kind, ref: 'refused' }))).toMatchObject({ code })
    expect(await bill('refused')).toMatchObject([{ cost: '0' }])
  })

  test('the tasks are listed, newest first', async () => {
    const ids = [await create({}), await create({})]
    const { data } = await jsonOf<Answer<Task[]>>(
      send(`${root}/text2video?pageNum=1&pageSize=2`, undefined, { headers: bearer() }),
    )
    expect(data.map((task) => task.task_id)).toEqual(ids.toReversed())
  })

  test('a callback is sent at every change of status', async () => {
    const { url, heard, stop } = openListener()
    const id = await create({ callback_url: url })
    await end(id)
    await until(async () => (await get(id), heard.length === 3 ? true : undefined))
    expect(heard.map((task) => task.task_status)).toEqual(['submitted', 'processing', 'succeed'])
    await stop()
  })

  test('fail ends the task with the message of its code, and lost bills a task without a response', async () => {
    const id = await create({ prompt: `${quick} sandbox:fail=1301` }, { ref: 'failed' })
    expect(await end(id)).toMatchObject({
      task_status: 'failed',
      task_status_msg: 'Failure to pass the risk control system',
    })
    expect(await bill('failed')).toMatchObject([{ cost: '0' }])
    expect(await isLost(post({ prompt: `${quick} sandbox:lost` }, { ref: 'lost' }))).toBe(true)
    expect(await lineOf('lost')).toMatchObject({ cost: '0.2' })
  })
})
