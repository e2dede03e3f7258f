import { expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { answer, facts, plainContext, videoOf } from './testing.ts'

test.each([
  ['ark', { items: [] }],
  ['dashscope', { data: [] }],
])('%s: a task list without a valid total is inconclusive', (vendor, list) => {
  const { find } = videoOf(vendor)
  const sought = { ref: 'att_1', upstreamModel: 'm', kind: 't2v', sentAt: 1_000, knownIds: new Set<string>() } as const
  expect(find?.read(answer({ ...list, total: 0 }), sought)).toBe('absent')
  for (const total of [undefined, null, '0']) expect(find?.read(answer({ ...list, total }), sought)).toBe('unsure')
})

test("Wan's list: known tasks are ignored, and a partial page or an unknown task is inconclusive", () => {
  const { find } = videoOf('dashscope')
  const sought = {
    ref: 'att_1',
    upstreamModel: 'm',
    kind: 't2v',
    sentAt: 1_000_000,
    knownIds: new Set(['t-1']),
  } as const
  const page = (id: string, total: number) => answer({ data: [{ task_id: id, gmt_create: sought.sentAt }], total })
  expect(find?.read(page('t-1', 1), sought)).toBe('absent')
  expect(find?.read(page('t-1', 2), sought)).toBe('unsure')
  expect(find?.read(page('t-2', 1), sought)).toBe('unsure')
})

test("a task in doubt is sought in Wan's list by its model and its time, which is written in UTC+8", () => {
  const sought = {
    ref: 'att_1',
    upstreamModel: 'wan2.6-t2v',
    kind: 't2v',
    sentAt: Date.UTC(2026, 3, 2, 15, 0, 7),
  } as const
  const { find } = videoOf('dashscope')
  const window = (sentUntil?: number) => {
    const call = find?.call({ ...sought, ...(sentUntil !== undefined && { sentUntil }) }, plainContext)
    const { pathname, searchParams } = new URL(call?.url ?? '')
    expect([call?.method, pathname]).toEqual(['GET', '/api/v1/tasks/'])
    return Object.fromEntries(searchParams)
  }
  // From ten minutes before, because clocks differ, to a quarter of an hour after.
  const first = { start_time: '20260402225007', end_time: '20260402231507', model_name: 'wan2.6-t2v', page_size: '100' }
  expect(window()).toEqual(first)
  expect(window(sought.sentAt + 3_600_000)).toEqual({ ...first, end_time: '20260403001507' })
})

test.each([
  // Wan tells that it is too late; of any other error nothing is known.
  ['dashscope', { 200: true }, { code: 'UnsupportedOperation' }, [400]],
  ['dashscope', {}, { code: 'InvalidParameter' }, []],
  ['runway', { 200: true, 204: true }, {}, [404]],
] as const)(
  '%s: a cancellation that is not known to have succeeded or failed is asked again',
  (vendor, done, body, late) => {
    const isStopped = (status: number) => videoOf(vendor).cancel?.read(answer(body, status))
    for (const status of Object.keys(done)) expect([status, isStopped(Number(status))]).toEqual([status, true])
    for (const status of late) expect([status, isStopped(status)]).toEqual([status, false])
    const others = [400, 401, 404, 429, 500].filter((status) => !(late as readonly number[]).includes(status))
    for (const status of others) expect(() => isStopped(status)).toThrow(GatewayError)
  },
)

test('a stored record omits the prompt and the inputs', () => {
  const output = { task_id: 't', task_status: 'RUNNING', orig_prompt: 'a secret', actual_prompt: 'a secret, in words' }
  const { record } = videoOf('dashscope').readTask(answer({ request_id: 'r', output }), facts)
  expect(record).toEqual({ request_id: 'r', output: { task_id: 't', task_status: 'RUNNING' } })
  const creations = [{ id: 'c', url: 'https://r.example/c', cover_url: 'https://r.example/cover' }]
  const vidu = { id: 'v', state: 'success', credits: 5, payload: 'att_1', prompt: 'a secret', images: ['x'], creations }
  expect(videoOf('vidu').readTask(answer(vidu), facts).record).toEqual({
    id: 'v',
    state: 'success',
    credits: 5,
    creations: [{ id: 'c', url: 'https://r.example/c' }],
  })
  const Resp = { id: 3, status: 5, prompt: 'a secret', negative_prompt: 'another', seed: 7 }
  expect(videoOf('pixverse').readTask(answer({ ErrCode: 0, ErrMsg: 'success', Resp }), facts).record).toEqual({
    ErrCode: 0,
    ErrMsg: 'success',
    Resp: { id: 3, status: 5, seed: 7 },
  })
  const sora = { id: 'video_1', status: 'queued', prompt: 'a secret' }
  expect(videoOf('openai').readTask(answer(sora), facts).record).toEqual({ id: 'video_1', status: 'queued' })
})

test('Sora: a video id that could lead to another address is refused', () => {
  for (const id of ['../x', 'a/b', '', undefined]) {
    expect(() => videoOf('openai').readTask(answer({ id, status: 'completed' }), facts)).toThrow(GatewayError)
  }
})

test.each(['ark', 'vidu'])('an unknown error word of %s counts as a failure', (vendor) => {
  const said = { reason: 'constructor', error: { type: 'constructor', message: 'no' } }
  expect(videoOf(vendor).readCreated(answer(said))).toEqual({ errorStatus: 500 })
})
