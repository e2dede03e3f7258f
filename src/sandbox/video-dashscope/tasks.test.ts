import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { jsonOf, until } from '../testing.ts'
import { isLost, readMp4, staysQueued, staysRunning } from '../video/testing.ts'
import { openWan, type Record } from './testing.ts'

const { sandbox, root, send, post, create, get, end, cancel, bill, clearBill, lineOf } = openWan()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const fox = { prompt: 'a fox runs' }
// For tests in which only the end matters.
const quick = { prompt: 'a fox runs sandbox:queued=0 sandbox:slow=0' }
const image = 'https://example.com/a.png'
const clip = 'https://example.com/a.mp4'

describe('creating a video task', () => {
  test('a created task is pending, and its request id is also in the response header', async () => {
    const response = await post({ model: 'wan2.6-t2v', input: fox })
    expect(response.status).toBe(200)
    const body = await jsonOf<Record>(response)
    expect(body).toEqual({
      output: { task_status: 'PENDING', task_id: expect.stringMatching(/^[0-9a-f-]{36}$/) },
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect(response.headers.get('x-request-id')).toBe(body.request_id)
  })

  test.each([
    ['no async header', { model: 'wan2.6-t2v', input: fox }, {}, 403, 'AccessDenied'],
    ['no key', { model: 'wan2.6-t2v', input: fox }, { authorization: '' }, 401, 'InvalidApiKey'],
    ['a bad key', { model: 'wan2.6-t2v', input: fox }, { authorization: 'Bearer bad-key' }, 401, 'InvalidApiKey'],
    ['an unknown model', { model: 'wan9-t2v', input: fox }, undefined, 404, 'ModelNotFound'],
    ['a chat model', { model: 'qwen-plus', input: fox }, undefined, 400, 'InvalidParameter'],
    ['malformed JSON', 'no', undefined, 400, 'InvalidParameter'],
    ['no prompt for the oldest model', { model: 'wan2.5-t2v-preview', input: {} }, undefined, 400, 'InvalidParameter'],
  ])('a request with %s is refused at once', async (_, body, headers, status, code) => {
    const response = await post(
      body,
      'refused',
      headers && {
        'x-dashscope-async': 'enable',
        ...headers,
        ...(Object.keys(headers).length === 0 && { 'x-dashscope-async': '' }),
      },
    )
    expect(response.status).toBe(status)
    expect(await jsonOf<object>(response)).toEqual({
      code,
      message: expect.any(String),
      request_id: expect.any(String),
    })
    expect(await bill('refused')).toMatchObject([{ status, cost: '0' }])
  })
})

describe('a video task', () => {
  test('a task waits, runs and succeeds, with its times in Beijing time', async () => {
    const waits = await create('wan2.6-t2v', { prompt: staysQueued })
    const pending = { task_id: waits, task_status: 'PENDING', submit_time: expect.any(String) }
    expect((await get(waits)).output).toEqual(pending)
    const runs = await create('wan2.6-t2v', { prompt: staysRunning })
    const running = await until(async () => {
      const { output } = await get(runs)
      return output.task_status === 'RUNNING' ? output : undefined
    })
    expect(running.scheduled_time).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/)
    const id = await create('wan2.6-t2v', quick, { size: '1280*720', duration: 4 }, 'one')
    const { output, usage } = await end(id)
    expect(output).toMatchObject({
      task_status: 'SUCCEEDED',
      orig_prompt: expect.stringContaining('a fox runs'),
      end_time: expect.any(String),
    })
    const submitted = Date.parse(`${output.submit_time?.replace(' ', 'T')}+08:00`)
    expect(Math.abs(Date.now() - submitted)).toBeLessThan(60_000)
    expect(output).not.toHaveProperty('actual_prompt')
    expect(usage).toEqual({
      duration: 4,
      input_video_duration: 0,
      output_video_duration: 4,
      video_count: 1,
      SR: 720,
      size: '1280*720',
    })
    // 4 seconds at 10 cents.
    const video = { seconds: 4, resolution: '720p', sound: true }
    expect(await bill('one')).toMatchObject([{ model: 'wan2.6-t2v', status: 200, units: { video }, cost: '0.4' }])
  })

  test('the link serves a playable file and is a 403 when changed', async () => {
    const { output } = await end(await create('wan2.7-t2v', fox, { resolution: '720P', ratio: '4:3', duration: 3 }))
    const link = output.video_url ?? ''
    const file = await fetch(link)
    expect(file.headers.get('content-type')).toBe('video/mp4')
    expect(readMp4(new Uint8Array(await file.arrayBuffer()))).toEqual({
      width: 1104,
      height: 832,
      ms: 3_000,
      tracks: 2,
    })
    expect((await fetch(link.replace('1104x832', '1920x1080'))).status).toBe(403)
  })

  test.each([
    [
      'wan2.5-t2v-preview',
      quick,
      { size: '832*480' },
      { video_duration: 5, video_ratio: '832*480', video_count: 1 },
      '0.25',
    ],
    [
      'wan2.5-i2v-preview',
      { ...quick, img_url: image },
      { resolution: '720P', duration: 10 },
      { video_duration: 10 },
      '1',
    ],
    // A resolution where a size belongs is ignored: the largest is made and billed.
    ['wan2.6-t2v', quick, { resolution: '720P' }, { SR: 1080, size: '1920*1080' }, '0.75'],
    ['wan2.6-i2v', { ...quick, img_url: image }, { resolution: '720P' }, { SR: 720, audio: true, duration: 5 }, '0.5'],
    ['wan2.6-i2v-flash', { ...quick, img_url: image }, { resolution: '720P' }, { audio: true }, '0.2'],
    ['wan2.6-i2v-flash', { ...quick, img_url: image }, { resolution: '720P', audio: false }, { audio: false }, '0.1'],
    [
      'wan2.6-r2v',
      { ...quick, reference_urls: [image, clip] },
      { size: '960*960' },
      { duration: 10, input_video_duration: 5, output_video_duration: 5 },
      '1',
    ],
    [
      'wan2.6-r2v',
      { ...quick, reference_urls: [image] },
      { size: '1088*832', duration: 10 },
      { duration: 10, input_video_duration: 0 },
      '1',
    ],
    [
      'wan2.7-t2v-2026-04-25',
      quick,
      { resolution: '720P', ratio: '9:16', duration: 15 },
      { SR: 720, ratio: '9:16', duration: 15 },
      '1.5',
    ],
    [
      'wan2.7-i2v',
      {
        media: [
          { type: 'first_frame', url: image },
          { type: 'last_frame', url: image },
        ],
      },
      {},
      { SR: 1080, duration: 5 },
      '0.75',
    ],
    [
      'wan2.7-r2v',
      { ...quick, media: [{ type: 'reference_video', url: clip }] },
      { resolution: '720P', duration: 10 },
      { duration: 15.02, ratio: '16:9' },
      '1.502',
    ],
    [
      'wan3.0-video',
      quick,
      { resolution: '720P', duration: 30 },
      { SR: 720, ratio: '16:9', duration: 30, fps: 30 },
      '3',
    ],
    ['wan3.0-video', quick, { resolution: '480P', ratio: '21:9', duration: -1 }, { SR: 480, ratio: '21:9' }, '0.25'],
    [
      'wan3.0-video',
      { media: [{ type: 'reference_video', url: clip }] },
      { resolution: '720P', ratio: 'adaptive' },
      { duration: 10.02, input_video_duration: 5.02 },
      '1.002',
    ],
  ])('a task of %s reports and bills what was made: %j %j', async (model, input, parameters, usage, cost) => {
    const record = await end(await create(model, input, parameters, 'made'))
    expect(record.usage).toMatchObject(usage)
    expect(await bill('made')).toMatchObject([{ cost }])
  })

  test('wan2.5 shows the extended prompt unless prompt_extend is off', async () => {
    const extended = await end(await create('wan2.5-t2v-preview', fox))
    expect(extended.output.actual_prompt).toStartWith('a fox runs')
    const plain = await end(await create('wan2.5-t2v-preview', quick, { prompt_extend: false }))
    expect(plain.output).not.toHaveProperty('actual_prompt')
  })

  test.each([
    ['wan2.7-t2v', {}, {}, 'Field required: input.prompt'],
    ['wan3.0-video', {}, {}, 'Field required: input.prompt'],
    ['wan3.0-video', quick, { duration: 31 }, 'less than or equal to 30'],
    ['wan3.0-video', { media: [{ type: 'first_clip', url: clip }] }, {}, 'first_clip is not supported'],
    [
      'wan3.0-video',
      { media: Array.from({ length: 11 }, () => ({ type: 'reference_image', url: image })) },
      {},
      'At most 10 reference_image',
    ],
    ['wan2.6-i2v', quick, {}, 'Field required: input.img_url'],
    ['wan2.6-r2v', quick, {}, 'Field required: input.reference_urls'],
    ['wan2.6-r2v', { ...quick, reference_urls: Array(6).fill(image) }, {}, 'at most 5 items'],
    ['wan2.6-r2v', { ...quick, reference_urls: [image] }, { duration: 11 }, 'less than or equal to 10'],
    ['wan2.6-t2v', quick, { size: '1104*832' }, 'The size does not match'],
    ['wan2.6-t2v', quick, { size: '832*480' }, 'The size does not match'],
    ['wan2.6-t2v', quick, { duration: '5' }, 'Input should be a valid integer: parameters.duration'],
    ['wan2.6-t2v', quick, { duration: 16 }, 'less than or equal to 15'],
    ['wan2.6-t2v', quick, { shot_type: 'double' }, "Input should be 'single' or 'multi'"],
    ['wan2.7-t2v', quick, { resolution: '720p' }, "Input should be '720P' or '1080P': parameters.resolution"],
    ['wan2.7-t2v', quick, { ratio: '21:9' }, 'parameters.ratio'],
    ['wan2.7-t2v', quick, { watermark: 'no' }, 'valid boolean'],
    ['wan2.7-i2v', { ...quick, media: [{ type: 'last_frame', url: image }] }, {}, 'is not supported: input.media'],
    [
      'wan2.7-i2v',
      {
        media: [
          { type: 'first_frame', url: image },
          { type: 'reference_image', url: image },
        ],
      },
      {},
      'is not supported',
    ],
    ['wan2.7-i2v', { ...quick, media: [{ type: 'first_frame', url: 'a.png' }] }, {}, 'url error'],
    ['wan2.7-i2v', { ...quick, media: [{ type: 'first_frame', url: 'oss://a.png' }] }, {}, 'url error'],
    ['wan2.7-t2v', { ...quick, audio_url: 'data:audio/wav;base64,AAAA' }, {}, 'url error'],
    ['wan2.7-r2v', { ...quick, media: [{ type: 'last_frame', url: image }] }, {}, 'last_frame is not supported'],
    ['wan2.7-r2v', { ...quick, media: [{ type: 'first_frame', url: image }] }, {}, 'at least 1 item'],
    [
      'wan2.7-r2v',
      { ...quick, media: [{ type: 'reference_video', url: clip }] },
      { duration: 11 },
      'less than or equal to 10',
    ],
  ])('a task of %s that breaks a rule fails and costs nothing: %j %j', async (model, input, parameters, message) => {
    const { output, usage } = await end(await create(model, input, parameters, 'failed'))
    expect(output).toMatchObject({ task_status: 'FAILED', code: 'InvalidParameter' })
    expect(output.message).toContain(message)
    expect(usage).toBeUndefined()
    expect(await bill('failed')).toMatchObject([{ status: 200, cost: '0' }])
  })

  test('an unknown task is a 200 with the status UNKNOWN', async () => {
    const response = await send(`${root}/tasks/nobody`)
    expect(response.status).toBe(200)
    expect((await jsonOf<Record>(response)).output).toEqual({ task_id: 'nobody', task_status: 'UNKNOWN' })
  })

  test('reading a task without a key is a 401', async () => {
    expect((await send(`${root}/tasks/x`, undefined, { headers: { authorization: '' } })).status).toBe(401)
  })
})

describe('cancelling a task', () => {
  test('a pending task can be cancelled once and costs nothing', async () => {
    const id = await create('wan2.6-t2v', { prompt: 'sandbox:queued=600000' }, {}, 'gone')
    const response = await cancel(id)
    expect(response.status).toBe(200)
    expect(await jsonOf<object>(response)).toEqual({ request_id: expect.any(String) })
    expect((await get(id)).output).toEqual({ task_id: id, task_status: 'CANCELED' })
    expect(await bill('gone')).toMatchObject([{ cost: '0' }])
    expect((await cancel(id)).status).toBe(400)
  })

  test('a running task and an unknown one cannot be cancelled', async () => {
    const id = await create('wan2.6-t2v', { prompt: 'sandbox:stuck sandbox:queued=0' })
    await until(async () => ((await get(id)).output.task_status === 'RUNNING' ? true : undefined))
    for (const task of [id, 'nobody']) {
      expect(await jsonOf<object>(cancel(task))).toMatchObject({
        code: 'UnsupportedOperation',
        message: 'Failed to cancel the task, please confirm if the task is in PENDING status.',
      })
    }
  })
})

type List = { data: { task_id: string; status: string; model_name: string }[]; total: number; total_page: number }
const list = (query: string): Promise<List> => jsonOf(send(`${root}/tasks/${query}`))

describe('the list of tasks', () => {
  test('the list is filtered and paged, newest first', async () => {
    const ids = []
    for (let left = 3; left > 0; left -= 1)
      ids.unshift(
        await create('wan2.7-i2v', { prompt: 'sandbox:queued=600000', media: [{ type: 'first_frame', url: image }] }),
      )
    const first = await list('?model_name=wan2.7-i2v&status=PENDING&page_size=2')
    expect(first).toMatchObject({ total: 3, total_page: 2, page_no: 1, page_size: 2, request_id: expect.any(String) })
    expect(first.data.map((row) => row.task_id)).toEqual(ids.slice(0, 2))
    expect(first.data[0]).toMatchObject({ status: 'PENDING', model_name: 'wan2.7-i2v', gmt_create: expect.any(Number) })
    const second = await list('?model_name=wan2.7-i2v&status=PENDING&page_size=2&page_no=2')
    expect(second.data.map((row) => row.task_id)).toEqual(ids.slice(2))
    expect((await list(`?task_id=${ids[1]}`)).data.map((row) => row.task_id)).toEqual(ids.slice(1, 2))
    const hourAgo = new Date(Date.now() + 7 * 3_600_000).toISOString().replaceAll(/\D/g, '').slice(0, 14)
    expect((await list(`?end_time=${hourAgo}`)).total).toBe(0)
    expect((await list(`?start_time=${hourAgo}`)).total).toBeGreaterThanOrEqual(3)
  })

  test.each([
    '?page_size=101',
    '?page_no=0',
    '?start_time=yesterday',
    '?start_time=20260101000000&end_time=20260103000000',
  ])('the query %s is refused', async (query) => {
    expect(await jsonOf<object>(send(`${root}/tasks/${query}`))).toMatchObject({ code: 'InvalidParameter' })
  })
})

describe('steering words in the prompt', () => {
  test('fail makes the task fail, not its creation', async () => {
    const record = await end(await create('wan2.6-t2v', { prompt: 'sandbox:fail=DataInspectionFailed' }, {}, 'failed'))
    expect(record.output).toMatchObject({
      task_status: 'FAILED',
      code: 'DataInspectionFailed',
      message: 'Input or output data may contain inappropriate content.',
    })
    expect(await bill('failed')).toMatchObject([{ cost: '0' }])
  })

  test.each([
    ['sandbox:status=429', 429, 'Throttling.RateQuota'],
    ['sandbox:status=503', 503, 'ModelUnavailable'],
    ['sandbox:leak', 401, 'InvalidApiKey'],
    ['sandbox:error200', 200, 'InternalError'],
  ])('the creation is refused and costs nothing: %s', async (prompt, status, code) => {
    const response = await post({ model: 'wan2.6-t2v', input: { prompt } }, 'none')
    expect(response.status).toBe(status)
    expect(response.headers.get('retry-after')).toBeNull()
    expect(await jsonOf<object>(response)).toMatchObject({ code })
    expect(await bill('none')).toMatchObject([{ status, cost: '0' }])
  })

  test.each(['sandbox:lost', 'sandbox:cut=1'])(
    '%s closes the connection, but the task is made and billed',
    async (prompt) => {
      const body = { model: 'wan2.6-t2v', input: { prompt } }
      expect(await isLost(post(body, 'lost').then((response) => response.text()))).toBe(true)
      expect(await lineOf('lost')).toMatchObject({ status: 200, cost: '0.75' })
    },
  )

  test('a client that disconnects does not stop the task', async () => {
    const body = { model: 'wan2.6-t2v', input: { prompt: 'sandbox:delay=600000' } }
    const url = `${root}/services/aigc/video-generation/video-synthesis`
    const headers = { 'x-dashscope-async': 'enable' }
    expect(await isLost(send(url, body, { headers, ref: 'left', signal: AbortSignal.timeout(50) }))).toBe(true)
    expect(await lineOf('left')).toMatchObject({ status: 200, cost: '0.75' })
  })

  test('charge-then-fail refuses the task and bills it', async () => {
    const response = await post({ model: 'wan2.6-t2v', input: { prompt: 'sandbox:charge-then-fail=500' } }, 'charged')
    expect(response.status).toBe(500)
    expect(await lineOf('charged')).toMatchObject({ status: 500, cost: '0.75' })
  })

  test('vanish makes the task unknown and costs nothing', async () => {
    const id = await create('wan2.6-t2v', { prompt: 'sandbox:vanish' }, {}, 'vanished')
    expect((await get(id)).output.task_status).toBe('UNKNOWN')
    expect(await bill('vanished')).toMatchObject([{ cost: '0' }])
  })

  test('odd-state reports an unknown status while the task runs', async () => {
    const odd = 'sandbox:odd-state=SUSPENDED'
    const shown = await create('wan2.6-t2v', { prompt: `${odd} sandbox:slow=600000` })
    await until(async () => ((await get(shown)).output.task_status === 'SUSPENDED' ? true : undefined))
    const id = await create('wan2.6-t2v', { prompt: `${odd} sandbox:slow=0` })
    expect((await end(id)).output.task_status).toBe('SUCCEEDED')
  })

  test('seconds sets the length that is made, reported and billed', async () => {
    const id = await create('wan2.6-t2v', { prompt: 'sandbox:seconds=7' }, { size: '1280*720', duration: 5 }, 'longer')
    expect((await end(id)).usage).toMatchObject({ duration: 7 })
    expect(await bill('longer')).toMatchObject([{ cost: '0.7' }])
  })

  test('poll-status refuses the first two polls', async () => {
    const id = await create('wan2.6-t2v', { prompt: 'sandbox:poll-status=503' })
    const statuses = []
    for (let left = 3; left > 0; left -= 1) statuses.push((await send(`${root}/tasks/${id}`)).status)
    expect(statuses).toEqual([503, 503, 200])
  })

  test('no-video omits the link, nousage the usage, and expired makes the link a 403', async () => {
    const none = await end(await create('wan2.6-t2v', { prompt: 'sandbox:no-video sandbox:nousage' }))
    expect(none.output).toMatchObject({ task_status: 'SUCCEEDED' })
    expect(none.output).not.toHaveProperty('video_url')
    expect(none).not.toHaveProperty('usage')
    const late = await end(await create('wan2.6-t2v', { prompt: 'sandbox:expired' }))
    expect((await fetch(late.output.video_url ?? '')).status).toBe(403)
  })
})
