import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { errorOf, jsonOf, until } from '../testing.ts'
import { isLost, openListener, openVideos, readMp4, staysQueued, staysRunning } from '../video/testing.ts'

const { sandbox, send, bill, clearBill, lineOf } = openVideos()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const tasks = `${sandbox.baseUrl('ark')}/contents/generations/tasks`
const second = 'doubao-seedance-2-0-260128'
const fast = 'doubao-seedance-2-0-fast-260128'
const newest = 'doubao-seedance-2-5-260901'
const pro = 'doubao-seedance-1-5-pro-251215'
const first = 'doubao-seedance-1-0-pro-250528'

type Task = {
  id: string
  status: string
  error: { code: string; message: string } | null
  content?: { video_url?: string; last_frame_url?: string }
  usage?: { completion_tokens: number; total_tokens: number }
  seed?: number
}

const quick = 'sandbox:queued=0 sandbox:slow=0'
const text = (words = quick) => ({ type: 'text', text: `a fox runs ${words}` })
const image = (role?: string) => ({ type: 'image_url', image_url: { url: 'https://h/a.png' }, ...(role && { role }) })
const movie = { type: 'video_url', video_url: { url: 'https://h/a.mp4' }, role: 'reference_video' }
const audio = { type: 'audio_url', audio_url: { url: 'https://h/a.mp3' }, role: 'reference_audio' }

const post = (body: object, ref?: string): Promise<Response> =>
  send(tasks, { model: second, content: [text()], ...body }, ref === undefined ? {} : { ref })
const create = async (body: object, ref?: string): Promise<string> => (await jsonOf<{ id: string }>(post(body, ref))).id
const get = (id: string): Promise<Task> => jsonOf(send(`${tasks}/${id}`))
const remove = (id: string): Promise<Response> => send(`${tasks}/${id}`, undefined, { method: 'DELETE' })
const reach = (id: string, ...states: string[]): Promise<Task> =>
  until(async () => {
    const task = await get(id)
    return states.includes(task.status) ? task : undefined
  })
const end = (id: string): Promise<Task> => reach(id, 'succeeded', 'failed', 'cancelled', 'expired')

describe('a video task', () => {
  test('a task is queued, runs and succeeds', async () => {
    const response = await post(
      {
        content: [text()],
        resolution: '720p',
        ratio: '16:9',
        duration: 5,
        seed: 11,
      },
      'one',
    )
    const { id, ...more } = await jsonOf<{ id: string }>(response)
    expect(more).toEqual({})
    expect(id).toMatch(/^cgt-\d{14}-[a-z0-9]{5}$/)
    const waits = await create({ content: [text(staysQueued)] })
    const queued = await get(waits)
    expect(queued).toMatchObject({ id: waits, model: second, status: 'queued', error: null, service_tier: 'default' })
    expect(queued).not.toHaveProperty('content')
    await reach(await create({ content: [text(staysRunning)] }), 'running')
    expect(await end(id)).toEqual({
      id,
      model: second,
      status: 'succeeded',
      error: null,
      content: { video_url: expect.stringContaining('.mp4?Expires=') },
      usage: { completion_tokens: 108_900, total_tokens: 108_900 },
      created_at: expect.any(Number),
      updated_at: expect.any(Number),
      seed: 11,
      resolution: '720p',
      ratio: '16:9',
      duration: 5,
      framespersecond: 24,
      service_tier: 'default',
      execution_expires_after: 172_800,
      generate_audio: true,
      draft: false,
      priority: 0,
    } as object as Task)
    // 108,900 tokens at 6 millionths of a dollar.
    expect(await bill('one')).toMatchObject([{ units: { video: { tokens: 108_900, seconds: 5 } }, cost: '0.6534' }])
  })

  test('a task returns a playable file and its last frame', async () => {
    const body = { resolution: '480p', ratio: '9:16', duration: 4, return_last_frame: true, generate_audio: false }
    const { content } = await end(await create(body))
    const file = new Uint8Array(await (await fetch(content?.video_url ?? '')).arrayBuffer())
    expect(readMp4(file)).toMatchObject({ width: 496, height: 864, tracks: 1 })
    const frame = await fetch(content?.last_frame_url ?? '')
    expect(frame.headers.get('content-type')).toBe('image/png')
    expect(Buffer.from(await frame.arrayBuffer()).readUInt32BE(16)).toBe(496)
  })

  test.each([
    [{ resolution: '480p' }, 50_638, '0.303828'],
    [{ resolution: '1080p', duration: -1 }, 245_025, '1.715175'],
    // Five seconds of input video: 241 frames, at the price for requests with input video.
    [{ content: [text(), movie] }, 216_900, '0.8676'],
    [{ model: pro }, 108_900, '0.2178'],
    [{ model: pro, generate_audio: false }, 108_900, '0.108900109'],
    // Half of 108,900 times 1,000,001 pico.
    [{ model: pro, generate_audio: false, service_tier: 'flex' }, 108_900, '0.054450054'],
    [{ model: first, frames: 29 }, 26_100, '0.026100026'],
    [{ model: pro, draft: true }, 50_638, '0.101276'],
    [{ content: [text(`${quick} --rs 480p --dur 4`)] }, 40_594, '0.243564'],
    // A field wins over a flag, and a bad flag is dropped.
    [{ content: [text(`${quick} --dur 4 --rs 999p`)], duration: 5 }, 108_900, '0.6534'],
    [{ content: [text(`${quick} sandbox:usage=1000`)] }, 1_000, '0.006'],
    [{ content: [text(`${quick} sandbox:seconds=4`)] }, 87_300, '0.5238'],
  ])('a task reports its tokens and bills them: %j', async (body, tokens, cost) => {
    expect((await end(await create(body, 'made'))).usage?.total_tokens).toBe(tokens)
    expect(await bill('made')).toMatchObject([{ cost }])
  })

  test.each([
    [{ content: undefined }, 'MissingParameter', 'content'],
    [{ content: [{ type: 'text', text: ' ' }] }, 'MissingParameter', 'content.text'],
    [{ content: [{ type: 'poem' }] }, 'InvalidParameter', 'content[0].type'],
    [{ content: [text(), image(), image()] }, 'InvalidParameter', 'content'],
    [{ content: [text(), image('last_frame')] }, 'InvalidParameter', 'content'],
    [{ content: [text(), image('first_frame'), image('reference_image')] }, 'InvalidParameter', 'content'],
    [{ content: [text(), ...Array(10).fill(image('reference_image'))] }, 'InvalidParameter', 'content'],
    [{ content: [text(), audio] }, 'InvalidParameter', 'content'],
    [{ model: pro, content: [text(), image('reference_image')] }, 'InvalidParameter', 'content'],
    [
      { content: [text(), { ...image(), image_url: { url: 'a.png' } }] },
      'InvalidParameter',
      'content[1].image_url.url',
    ],
    [{ resolution: '720P' }, 'InvalidParameter', 'resolution'],
    [{ model: fast, resolution: '1080p' }, 'InvalidParameter', 'resolution'],
    [{ ratio: '2:1' }, 'InvalidParameter', 'ratio'],
    [{ duration: 16 }, 'InvalidParameter', 'duration'],
    [{ duration: '5' }, 'InvalidParameter', 'duration'],
    [{ seed: -2 }, 'InvalidParameter', 'seed'],
    [{ service_tier: 'flex' }, 'InvalidParameter', 'service_tier'],
    [{ draft: true }, 'InvalidParameter', 'draft'],
    [{ model: pro, draft: true, resolution: '720p' }, 'InvalidParameter', 'resolution'],
    [{ callback_url: 'here' }, 'InvalidParameter', 'callback_url'],
    [{ execution_expires_after: 60 }, 'InvalidParameter', 'execution_expires_after'],
    [{ model: newest, content: [text(), image()], ratio: '16:9' }, 'InvalidParameter.TaskTypeConstraint', 'ratio'],
  ])('a task that breaks a rule is refused with a 400 and costs nothing: %j', async (body, code, param) => {
    expect(await errorOf(post(body, 'refused'))).toEqual({
      status: 400,
      code,
      param,
      type: 'BadRequest',
      message: expect.stringContaining('Request id: '),
    })
    expect(await bill('refused')).toMatchObject([{ status: 400, cost: '0' }])
  })

  test('an unknown model is a 404, a bad key a 401 and an unknown task a 404', async () => {
    expect(await errorOf(post({ model: 'none' }))).toMatchObject({
      status: 404,
      code: 'InvalidEndpointOrModel.NotFound',
    })
    const denied = await send(`${tasks}/x`, undefined, { headers: { authorization: 'Bearer bad-key' } })
    expect(await errorOf(denied)).toMatchObject({ status: 401, code: 'AuthenticationError' })
    expect(await errorOf(send(`${tasks}/x`))).toMatchObject({ status: 404, code: 'NotFound.Task', type: 'NotFound' })
  })

  test('a task can be made from an existing draft', async () => {
    const draft = await create({ model: pro, draft: true, duration: 6 })
    const content = [{ type: 'draft_task', draft_task: { id: draft } }]
    await end(draft)
    const final = await end(await create({ model: pro, content, resolution: '1080p' }))
    expect(final).toMatchObject({ draft: false, draft_task_id: draft, resolution: '1080p', duration: 6 })
    const none = [{ type: 'draft_task', draft_task: { id: 'none' } }]
    expect(await errorOf(post({ model: pro, content: none }))).toMatchObject({ code: 'InvalidParameter' })
  })
})

describe('deleting a task', () => {
  test('deleting a queued task cancels it, once', async () => {
    const id = await create({ content: [text('sandbox:queued=600000')] }, 'gone')
    const response = await remove(id)
    expect([response.status, await response.text()]).toEqual([200, ''])
    expect(await get(id)).toMatchObject({ status: 'cancelled', error: null })
    expect(await bill('gone')).toMatchObject([{ cost: '0' }])
    expect(await errorOf(remove(id))).toMatchObject({ status: 403, code: 'OperationDenied.InvalidState' })
  })

  test('a running task cannot be deleted and a finished one can', async () => {
    const stuck = await create({ content: [text('sandbox:queued=0 sandbox:stuck')] })
    await reach(stuck, 'running')
    expect((await remove(stuck)).status).toBe(403)
    const id = await create({})
    await end(id)
    expect((await remove(id)).status).toBe(200)
    expect((await send(`${tasks}/${id}`)).status).toBe(404)
  })
})

type List = { items: Task[]; total: number }
const list = async (query: string): Promise<List> => jsonOf(send(`${tasks}?${query}`))

describe('the list of tasks', () => {
  test('the list is filtered and paged', async () => {
    const ids: string[] = []
    for (let left = 3; left > 0; left -= 1)
      ids.unshift(await create({ model: fast, content: [text('sandbox:queued=600000')] }))
    const page = await list(`filter.model=${fast}&filter.status=queued&page_size=2`)
    expect([page.total, page.items.map(({ id }) => id)]).toEqual([3, ids.slice(0, 2)])
    const last = await list(`filter.model=${fast}&page_size=2&page_num=2`)
    expect(last.items.map(({ id }) => id)).toEqual(ids.slice(2))
    const some = await list(`filter.task_ids=${ids[0]}&filter.task_ids=${ids[2]}`)
    expect(some.items.map(({ id }) => id)).toEqual([ids[0], ids[2]] as string[])
    expect((await list('filter.service_tier=flex&filter.status=queued')).total).toBe(0)
    expect((await send(`${tasks}?page_size=501`)).status).toBe(400)
  })
})

const statuses = (heard: readonly Record<string, unknown>[]): unknown[] => heard.map(({ status }) => status)

describe('the callbacks of a task', () => {
  test("a callback with the task's record is sent at every change of status", async () => {
    const { url, heard, stop } = openListener()
    const id = await create({ callback_url: url })
    await until(async () => (await get(id), heard.length === 3 ? true : undefined))
    expect(statuses(heard)).toEqual(['queued', 'running', 'succeeded'])
    expect(heard[2]).toEqual((await get(id)) as object as Record<string, unknown>)
    await stop()
  })

  test('a failed final callback is sent three times and an earlier one once', async () => {
    const { url, heard, stop } = openListener(500, 500, 500, 500)
    const id = await create({
      content: [text(`${quick} sandbox:fail=OutputVideoSensitiveContentDetected`)],
      callback_url: url,
    })
    await until(async () => (await get(id), heard.length === 5 ? true : undefined))
    expect(statuses(heard)).toEqual(['queued', 'running', 'failed', 'failed', 'failed'])
    expect(heard[4]).toMatchObject({ error: { code: 'OutputVideoSensitiveContentDetected' } })
    await stop()
  })

  test.each([
    ['double-callback', ['queued', 'queued', 'running', 'running', 'succeeded', 'succeeded']],
    ['no-callback', []],
  ])('the steering word %s repeats or suppresses the callbacks', async (word, expected) => {
    const { url, heard, stop } = openListener()
    const id = await create({ content: [text(`${quick} sandbox:${word}`)], callback_url: url })
    await end(id)
    // A task that is created afterwards: by its last callback, those of the first task would have come.
    const later = await create({ callback_url: url })
    const heardOf = (one: string) => heard.filter((record) => record['id'] === one)
    await until(async () => {
      await get(later)
      return heardOf(id).length >= expected.length && heardOf(later).length === 3 ? true : undefined
    })
    expect(statuses(heardOf(id))).toEqual(expected)
    await stop()
  })
})

describe('steering words in the prompt', () => {
  test.each([
    [`${quick} sandbox:fail=InternalServiceError`, { status: 'failed', error: { code: 'InternalServiceError' } }],
    ['sandbox:expire', { status: 'expired', error: null }],
  ])('%s ends the task without cost', async (words, record) => {
    expect(await end(await create({ content: [text(words)] }, 'free'))).toMatchObject(record)
    expect(await bill('free')).toMatchObject([{ cost: '0' }])
  })

  test('vanish makes the task a 404, lost closes the connection, status=429 refuses the task', async () => {
    const id = await create({ content: [text('sandbox:vanish')] })
    expect((await send(`${tasks}/${id}`)).status).toBe(404)
    expect(await isLost(post({ content: [text('sandbox:lost')] }, 'lost'))).toBe(true)
    expect(await lineOf('lost')).toMatchObject({ status: 200, cost: '0.6534' })
    expect(await errorOf(post({ content: [text('sandbox:status=429')] }))).toMatchObject({
      status: 429,
      type: 'TooManyRequests',
    })
  })

  test('odd-state reports an unknown status while the task runs', async () => {
    const odd = 'sandbox:odd-state=preparing'
    await reach(await create({ content: [text(`${odd} sandbox:slow=600000`)] }), 'preparing')
    expect(await end(await create({ content: [text(`${odd} sandbox:slow=0`)] }))).toMatchObject({ status: 'succeeded' })
  })
})
