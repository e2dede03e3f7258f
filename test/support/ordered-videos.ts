import { afterAll, afterEach, beforeAll, expect } from 'bun:test'
import { formatDollars } from '../../src/base/money.ts'
import { startTestGateway, type TestGateway, until } from './gateway.ts'

const path = '/v1/videos/generations'

export type Shown = {
  readonly id: string
  readonly status: string
  readonly content?: { readonly video_url: string | null }
  readonly usage?: object
  readonly seed?: number
  readonly error?: { readonly code: string; readonly message: string; readonly param?: string }
}

/** Videos as a customer orders them, and everything that is recorded about one. */
export function videosOf(open: () => TestGateway) {
  const headers = () => ({ authorization: `Bearer ${open().key}` })
  const post = (body: object, query = '') => open().post(path + query, body)

  async function order(body: object, query = ''): Promise<Shown> {
    const response = await post(body, query)
    const said = await response.text()
    if (!response.ok) throw new Error(`${response.status} ${said}`)
    return JSON.parse(said) as Shown
  }
  const call = (method: 'GET' | 'DELETE', id: string) =>
    fetch(`${open().url}${path}/${id}`, { method, headers: headers() })

  async function read(id: string): Promise<Shown> {
    const response = await call('GET', id)
    expect(response.status).toBe(200)
    return (await response.json()) as Shown
  }

  /** What the task's row, the ledger and the simulator's own bill say about a task. */
  async function writtenOf(id: string) {
    const gateway = open()
    const { store } = gateway
    await gateway.settleBooks()
    const task = await store.db.selectFrom('task').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
    const hold = store.db.selectFrom('hold').selectAll().where('id', '=', task.hold_id)
    const request = store.db.selectFrom('request').selectAll().where('id', '=', task.request_id)
    const attempts = store.db.selectFrom('attempt').selectAll().where('request_id', '=', task.request_id)
    const entries = await store.db.selectFrom('entry').selectAll().where('txn_id', '=', task.hold_id).execute()
    return {
      task,
      hold: await hold.executeTakeFirstOrThrow(),
      request: await request.executeTakeFirstOrThrow(),
      attempts: await attempts.execute(),
      /** Dollars by ledger account. */
      entries: Object.fromEntries(entries.map(({ account, amount }) => [account, formatDollars(amount)])),
      bill: (await gateway.bill()).filter(({ ref }) => ref === task.attempt_id).map(({ cost }) => cost),
    }
  }

  const unfinished = () => open().store.db.selectFrom('task').select('id').where('finished_at', 'is', null).execute()

  return {
    post,
    order,
    read,
    cancel: (id: string) => call('DELETE', id),
    writtenOf,
    ended: async (id: string): Promise<Shown> => {
      await until(async () => !['submitted', 'running'].includes((await read(id)).status))
      return read(id)
    },
    idle: () => until(async () => (await unfinished()).length === 0),
  }
}

/**
 * The videos of a gateway that serves one file's tests. After each test no video is under way, and the books balance.
 */
export function videoGateway(options: Parameters<typeof startTestGateway>[0] = {}) {
  let gateway: TestGateway
  const videos = videosOf(() => gateway)
  beforeAll(async () => {
    gateway = await startTestGateway(options)
  })
  afterEach(async () => {
    await videos.idle()
    await gateway.assertBooks()
  })
  afterAll(() => gateway.close())
  return { ...videos, gateway: () => gateway }
}
