import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { jsonOf, until } from '../testing.ts'
import { isLost, openVideos, readMp4, staysQueued, staysRunning } from '../video/testing.ts'

const { sandbox, send, bill, clearBill, lineOf } = openVideos()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const root = sandbox.baseUrl('minimax')
const quick = 'sandbox:queued=0 sandbox:slow=0'

type Base = { base_resp: { status_code: number; status_msg: string } }
type Task = Base & { task_id: string; status: string; file_id: string }
type File = Base & { file?: { file_id: string; download_url: string } }

const post = (body: object, ref?: string): Promise<Response> =>
  send(
    `${root}/video_generation`,
    { model: 'MiniMax-Hailuo-02', prompt: quick, ...body },
    ref === undefined ? {} : { ref },
  )
const create = async (body: object, ref?: string): Promise<string> => (await jsonOf<Task>(post(body, ref))).task_id
const get = (id: string): Promise<Task> => jsonOf(send(`${root}/query/video_generation?task_id=${id}`))
const fileOf = (id: string): Promise<File> => jsonOf(send(`${root}/files/retrieve?file_id=${id}`))
const end = (id: string): Promise<Task> =>
  until(async () => {
    const task = await get(id)
    return task.status === 'Success' || task.status === 'Fail' ? task : undefined
  })

describe('a video task', () => {
  test('a task is prepared, queued, processed and succeeds with a file', async () => {
    const body = { duration: 10 }
    const created = await jsonOf<Task>(post(body, 'one'))
    expect<Pick<Task, 'task_id' | 'base_resp'>>(created).toEqual({
      task_id: expect.stringMatching(/^\d+$/),
      base_resp: { status_code: 0, status_msg: 'success' },
    })
    const waits = await create({ prompt: staysQueued })
    expect((await get(waits)).status).toBe('Preparing')
    expect((await get(waits)).status).toBe('Queueing')
    const runs = await create({ prompt: staysRunning })
    const running = await until(async () => {
      const task = await get(runs)
      return task.status === 'Processing' ? task : undefined
    })
    expect(running.file_id).toBe('')
    const { file_id: fileId } = await end(created.task_id)
    const { file } = await fileOf(fileId)
    expect(file?.file_id).toBe(fileId)
    // The link needs no key.
    const bytes = new Uint8Array(await (await fetch(file?.download_url ?? '')).arrayBuffer())
    expect(readMp4(bytes)).toEqual({ width: 1360, height: 768, ms: 10_000, tracks: 1 })
    expect(await bill('one')).toMatchObject([{ model: 'MiniMax-Hailuo-02', cost: '0.56' }])
  })

  test.each([
    [{}, '0.28'],
    [{ resolution: '1080P', first_frame_image: 'https://h/a.png' }, '0.49'],
    [{ prompt: `${quick} sandbox:seconds=9` }, '0.28'],
    [{ subject_reference: [{ type: 'character', image: ['https://h/a.png'] }], prompt_optimizer: true }, '0.28'],
  ])('a task costs its ordered length and resolution: %j', async (body, cost) => {
    await end(await create(body, 'priced'))
    expect(await bill('priced')).toMatchObject([{ cost }])
  })

  test.each<[object, number]>([
    [{ prompt: '' }, 2013],
    [{ prompt: 7 }, 2013],
    [{ duration: '6' }, 2013],
    [{ duration: 8 }, 2013],
    [{ resolution: '720P' }, 2013],
    [{ resolution: '512P' }, 2013],
    [{ resolution: '1080P', duration: 10 }, 2013],
    [{ first_frame_image: 'AAAA' }, 2013],
    [{ subject_reference: [{ type: 'car', image: ['https://h/a.png'] }] }, 2013],
    [{ prompt_optimizer: 'yes' }, 2013],
    [{ model: 'none' }, 2013],
    [{ model: 'MiniMax-M2.5' }, 2013],
    [{ prompt: 'sandbox:status=429' }, 1002],
    [{ prompt: 'sandbox:status=402' }, 1008],
  ])('a task that breaks a rule is refused with an error code and status 200: %j', async (body, code) => {
    const response = await post(body, 'refused')
    expect(response.status).toBe(200)
    expect(await jsonOf<Base>(response)).toMatchObject({ base_resp: { status_code: code } })
    expect(await bill('refused')).toMatchObject([{ cost: '0' }])
  })

  test('a task and its file cannot be read without a valid key', async () => {
    const id = await create({})
    const { file_id: fileId } = await end(id)
    for (const authorization of ['', 'Bearer bad-key']) {
      for (const path of [`query/video_generation?task_id=${id}`, `files/retrieve?file_id=${fileId}`]) {
        const response = await send(`${root}/${path}`, undefined, { headers: { authorization } })
        expect([response.status, await jsonOf<Base>(response)]).toMatchObject([
          200,
          { base_resp: { status_code: 1004 } },
        ])
      }
    }
  })

  test('an unknown task and an unknown file are refused as invalid parameters', async () => {
    expect(await get('123')).toMatchObject({ base_resp: { status_code: 2013 } })
    expect(await fileOf('7123')).toMatchObject({ base_resp: { status_code: 2013 } })
    const { file_id: fileId } = await end(await create({ prompt: `${quick} sandbox:no-video` }))
    expect(fileId).toBe('')
  })

  test('a failed task costs nothing and reports its error code', async () => {
    const task = await end(await create({ prompt: `${quick} sandbox:fail=1027` }, 'failed'))
    expect(task).toMatchObject({ status: 'Fail', file_id: '', base_resp: { status_code: 1027 } })
    expect(await bill('failed')).toMatchObject([{ cost: '0' }])
    const odd = await end(await create({ prompt: `${quick} sandbox:fail=SomeCode` }))
    expect(odd.base_resp).toEqual({ status_code: 1000, status_msg: 'The sandbox was asked to fail with SomeCode.' })
  })

  test('lost closes the connection without a response, but the task is billed', async () => {
    expect(await isLost(post({ prompt: `${quick} sandbox:lost` }, 'lost'))).toBe(true)
    expect(await lineOf('lost')).toMatchObject({ cost: '0.28' })
  })

  test('file-status refuses the first two requests for the file', async () => {
    const { file_id: fileId } = await end(await create({ prompt: `${quick} sandbox:file-status=429` }))
    const codes = []
    for (let call = 0; call < 3; call += 1) codes.push((await fileOf(fileId)).base_resp.status_code)
    expect(codes).toEqual([1002, 1002, 0])
  })

  test('a server error is a 500 with an error code', async () => {
    const response = await post({ prompt: 'sandbox:status=500' })
    expect([response.status, await jsonOf<Base>(response)]).toMatchObject([500, { base_resp: { status_code: 1000 } }])
  })
})
