import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { newOpaqueId } from '../../src/base/ids.ts'
import { parseDollars } from '../../src/base/money.ts'
import { startTestGateway, type TestGateway, until } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { booked, recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { errorOf } from '../support/streams.ts'

let gateway: TestGateway
let first: { id: string; key: string; keyId: string }
let second: { id: string; key: string }

beforeAll(async () => {
  gateway = await startTestGateway()
  first = await gateway.account({ dollars: '50' })
  second = await gateway.account({ dollars: '50' })
})
afterEach(async () => {
  await until(async () => (await openTasks(gateway)) === 0)
  await gateway.assertBooks()
})
afterAll(() => gateway.close())

async function openTasks({ store }: TestGateway): Promise<number> {
  const open = store.db.selectFrom('task').select('id').where('state', 'in', ['creating', 'submitted', 'running'])
  return (await open.execute()).length
}

const path = '/v1/videos/generations'
const wan = { model: 'wan2.6-t2v', duration: 5, resolution: '720p' }
const kling = { model: 'kling-v2-6', duration: 5, resolution: '1080p' }
const seedance = { model: 'doubao-seedance-2-0-260128', duration: 5, resolution: '720p' }

type Record = {
  id: string
  status: string
  created_at?: number
  content?: Content
  error?: { code: string } | null
  output?: object
}
type Content = { video_url: string | null; expired?: boolean }

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

type Headers = { [name: string]: string }

function order(prompt: string, body: object = wan, headers: Headers = {}, query = '', key = first.key) {
  return gateway.post(path + query, { ...body, input: { prompt } }, { ...bearer(key), ...headers })
}

async function ordered(prompt: string, body: object = wan, query = ''): Promise<Record> {
  const response = await order(prompt, body, {}, query)
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as Record
}

const call = (method: string, id: string, key = first.key) =>
  fetch(`${gateway.url}${path}/${id}`, { method, headers: bearer(key) })

async function read(id: string): Promise<Record> {
  const response = await call('GET', id)
  expect(response.status).toBe(200)
  return (await response.json()) as Record
}

/** The record once the task has ended. */
async function ended(id: string): Promise<Record> {
  await until(async () => !['submitted', 'running'].includes((await read(id)).status))
  return read(id)
}

const upstreamIdOf = async (id: string) => {
  const row = gateway.store.db.selectFrom('task').select('upstream_id').where('id', '=', id)
  return (await row.executeTakeFirstOrThrow()).upstream_id ?? ''
}

describe('a task of another account', () => {
  test('a foreign task looks like one that does not exist, by either id and on every path (T-01, T-02)', async () => {
    const { id } = await ordered('A fox.', wan, '?wait=true')
    const ids = [id, await upstreamIdOf(id)]
    expect((await read(ids[1] ?? '')).id).toBe(id)
    const random = newOpaqueId('vid')
    for (const method of ['GET', 'DELETE']) {
      const never = await refusedForFree(gateway, () => call(method, random, second.key))
      const said = await never.text()
      expect(never.status).toBe(404)
      expect(JSON.parse(said)).toMatchObject({ error: { code: 'task_not_found' } })
      for (const foreign of ids) {
        const answer = await refusedForFree(gateway, () => call(method, foreign, second.key))
        expect([answer.status, await answer.text()]).toEqual([404, said])
      }
    }
    const list = await fetch(gateway.url + path, { headers: bearer(second.key) })
    expect(await list.json()).toEqual({ object: 'list', data: [], next: null })
    const after = await fetch(`${gateway.url}${path}?after=${id}`, { headers: bearer(second.key) })
    expect(after.status).toBe(400)
  })

  test.each(['..%2f..%2fadmin', '%00', "'%20or%201=1--", 'vid_', '%', 'a'.repeat(300)])(
    'a task by the id %s is a 404 (S-09)',
    async (id) => {
      const answer = await refusedForFree(gateway, () => call('GET', id))
      expect(answer.status).toBe(404)
    },
  )
})

test('a million task ids are 128 random bits: none repeats, and they have no order (T-03)', () => {
  const count = 1_000_000
  const ids = new Set<string>()
  let ascending = 0
  let before = ''
  for (let made = 0; made < count; made++) {
    const id = newOpaqueId('vid')
    ids.add(id)
    if (id > before) ascending++
    before = id
  }
  expect(ids.size).toBe(count)
  expect(Math.abs(ascending / count - 0.5)).toBeLessThan(0.01)
  // No byte comes from a clock or a counter: each has had every value soon.
  const values = Array.from({ length: 16 }, () => new Set<number>())
  for (const id of [...ids].slice(0, 20_000)) {
    expect(id).toMatch(/^vid_[0-9a-f]{32}$/)
    for (const [at, byte] of Buffer.from(id.slice('vid_'.length), 'hex').entries()) values[at]?.add(byte)
  }
  expect(values.map(({ size }) => size)).toEqual(values.map(() => 256))
})

test('the ids of two tasks ordered together have nothing in common (T-03)', async () => {
  const [one, other] = await Promise.all([ordered('A fox.'), ordered('A crow.')])
  for (const { id } of [one, other]) expect(id).toMatch(/^vid_[0-9a-f]{32}$/)
  // An id that began with the time of its order would have these digits in common.
  expect(one.id.slice(0, 12)).not.toBe(other.id.slice(0, 12))
})

test.each(['https://10.0.0.1/', 'https://169.254.169.254/', 'https://[fd00:ec2::254]/'])(
  'a video with a webhook to %s is not ordered (T-09)',
  async (url) => {
    const answer = await refusedForFree(gateway, () => order('A fox.', { ...wan, webhook_url: url }))
    expect(await errorOf(answer)).toMatchObject({ status: 400, code: 'invalid_url', param: 'webhook_url' })
  },
)

test('a finished task is not changed by a late or forged callback (T-06)', async () => {
  const { id } = await ordered('A fox.', seedance, '?wait=true')
  const before = await read(id)
  const create = (await gateway.calls()).find(({ body }) => body['callback_url'] !== undefined)
  const url = String(create?.body['callback_url'])
  expect((await fetch(url, { method: 'POST', body: '{"status":"running"}' })).status).toBe(200)
  await gateway.tasks.turn()
  await gateway.tasks.idle()
  expect(await read(id)).toEqual(before)
  const forged = url.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
  for (const other of [forged, `${gateway.url}/callbacks/video/${id}`, `${gateway.url}/callbacks/video/x.y`]) {
    expect((await refusedForFree(gateway, () => fetch(other, { method: 'POST' }))).status).toBe(404)
  }
})

describe('waiting for a task (T-13)', () => {
  test('a wait ends with 202 at its timeout, and the task goes on', async () => {
    const startedAt = performance.now()
    const response = await order('A fox. sandbox:queued=4000', wan, {}, '?wait=true&timeout=1')
    // The cost is not known yet.
    expect([response.status, response.headers.get('x-turnpike-cost')]).toEqual([202, null])
    expect(performance.now() - startedAt).toBeGreaterThan(990)
    const body = (await response.json()) as Record
    expect(body).toEqual({
      id: body.id,
      model: wan.model,
      status: 'submitted',
      created_at: expect.any(Number),
    } as never)
    expect((await ended(body.id)).status).toBe('succeeded')
  })

  test('a wait ends with 200 and the cost when the task succeeds or fails', async () => {
    const made = await order('A fox.', wan, {}, '?wait=true')
    expect([made.status, made.headers.get('x-turnpike-cost')]).toEqual([200, '0.5'])
    const failed = await order('A fox. sandbox:fail=DataInspectionFailed', { ...wan, wait: true })
    expect([failed.status, failed.headers.get('x-turnpike-cost')]).toEqual([200, '0'])
    expect(await failed.json()).toMatchObject({ status: 'failed', error: { code: 'DataInspectionFailed' } })
  })

  test('a task still ends after its waiting client has left', async () => {
    const leave = new AbortController()
    const sent = fetch(`${gateway.url}${path}?wait=true`, {
      method: 'POST',
      headers: { ...bearer(first.key), 'content-type': 'application/json' },
      body: JSON.stringify({ ...wan, input: { prompt: 'A fox in the snow. sandbox:slow=3000' } }),
      signal: leave.signal,
    }).catch(() => 'gone')
    await until(async () => (await openTasks(gateway)) === 1)
    leave.abort()
    expect(await sent).toBe('gone')
    await until(async () => (await openTasks(gateway)) === 0)
  })
})

describe('an Idempotency-Key', () => {
  test('one key orders one video, also if it is used many times at once', async () => {
    const headers = { 'idempotency-key': 'one-fox' }
    const before = (await gateway.bill()).length
    const answers = await Promise.all(Array.from({ length: 12 }, () => order('A fox. sandbox:delay=50', wan, headers)))
    const ids = new Set<string>()
    for (const answer of answers) {
      if (answer.status === 202) ids.add(((await answer.json()) as Record).id)
      else expect(answer.status).toBe(409)
    }
    expect(ids.size).toBe(1)
    const again = await order('A fox. sandbox:delay=50', wan, headers)
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true'])
    expect(ids).toContain(((await again.json()) as Record).id)
    expect((await order('Another fox.', wan, headers)).status).toBe(422)
    const [id = ''] = ids
    expect((await ended(id)).status).toBe('succeeded')
    expect((await gateway.bill()).length).toBe(before + 1)
  })

  test('a key can be used again after the vendor refused the order', async () => {
    const headers = { 'idempotency-key': 'refused-fox' }
    const refused = await order('A fox. sandbox:status=400', wan, headers)
    expect(refused.status).toBe(400)
    expect((await order('A fox.', wan, headers)).status).toBe(202)
  })
})

/** What the customer has, and what we have lost. */
const paid = async () => [await gateway.balance(first.id), await booked(gateway, 'platform:loss')]

describe('a vendor that fails', () => {
  test("an order that the vendor refuses is a 400 in the vendor's own words that costs nothing and is not listed", async () => {
    const listed = async () => {
      const answer = await fetch(gateway.url + path, { headers: bearer(first.key) })
      return ((await answer.json()) as { data: Record[] }).data.map(({ id }) => id)
    }
    const before = { balance: await gateway.balance(first.id), listed: await listed() }
    const response = await order('A fox. sandbox:status=400')
    expect(await errorOf(response)).toEqual({
      status: 400,
      message: 'Required parameter(s) missing or invalid, please check the request parameters.',
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_value',
    })
    expect(await recordOf(gateway, response)).toMatchObject({ status: 400, cost: 0n, capability: 'video' })
    expect({ balance: await gateway.balance(first.id), listed: await listed() }).toEqual(before)
  })

  test('an order whose answer got lost is found again and not repeated (U-03)', async () => {
    const before = (await gateway.bill()).length
    const { id, status } = await ordered('A fox. sandbox:lost', kling)
    expect(status).toBe('submitted')
    expect((await ended(id)).status).toBe('succeeded')
    expect((await gateway.bill()).length).toBe(before + 1)
  })

  test('a task succeeds even if polls are refused', async () => {
    const { id } = await ordered('A fox. sandbox:poll-status=503')
    expect((await ended(id)).status).toBe('succeeded')
  })

  test('an unknown state from the vendor is logged, and the task still succeeds', async () => {
    const { id } = await ordered('A fox. sandbox:odd-state=PONDERING sandbox:slow=3000')
    expect((await ended(id)).status).toBe('succeeded')
    expect(gateway.logged.join('')).toContain('PONDERING')
  })

  test("a success without a video is a failure, and the vendor's charge is our loss", async () => {
    const before = await booked(gateway, 'platform:loss')
    const { id } = await ordered('A fox. sandbox:no-video')
    expect((await ended(id)).error?.code).toBe('upstream_no_output')
    expect(before - (await booked(gateway, 'platform:loss'))).toBe(parseDollars('0.5') ?? 0n)
  })

  test('a task that the vendor has lost fails with upstream_task_lost, and neither side pays for it', async () => {
    const before = await paid()
    const { id } = await ordered('A fox. sandbox:vanish')
    expect((await ended(id)).error?.code).toBe('upstream_task_lost')
    expect(await paid()).toEqual(before)
  })
})

describe('cancelling a task', () => {
  test('a queued task can be cancelled once, and a second time is a 409', async () => {
    const { id } = await ordered('A fox. sandbox:queued=60000', seedance)
    const cancelled = await call('DELETE', id)
    expect([cancelled.status, ((await cancelled.json()) as Record).status]).toEqual([200, 'cancelled'])
    const again = await call('DELETE', id)
    expect([again.status, again.headers.get('x-should-retry')]).toEqual([409, 'false'])
    expect(await again.json()).toMatchObject({ error: { code: 'not_cancellable' } })
  })

  test('cancelling is a 409 where the vendor cannot cancel or the task has ended', async () => {
    const { id } = await ordered('A fox. sandbox:slow=3000', kling)
    expect((await call('DELETE', id)).status).toBe(409)
    expect((await ended(id)).status).toBe('succeeded')
    expect((await call('DELETE', id)).status).toBe(409)
  })
})

describe('the balance and the list of tasks', () => {
  test('no more videos are ordered than the balance covers', async () => {
    const poor = await gateway.account({ dollars: '0.6' })
    const answers = await Promise.all(Array.from({ length: 5 }, () => order('A fox.', wan, {}, '', poor.key)))
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([202, 402, 402, 402, 402])
    const refused = answers.find(({ status }) => status === 402)
    expect(await refused?.json()).toMatchObject({ error: { code: 'insufficient_balance' } })
    await until(async () => (await gateway.balance(poor.id)).held === 0n)
  })

  test('the list of tasks is paged and filtered', async () => {
    const own = await gateway.account({ dollars: '20' })
    for (const prompt of ['One.', 'Two.', 'Three. sandbox:fail=InternalError']) {
      expect((await order(prompt, { ...wan, wait: true }, {}, '', own.key)).status).toBe(200)
    }
    const list = async (query: string) => {
      const response = await fetch(`${gateway.url}${path}${query}`, { headers: bearer(own.key) })
      return (await response.json()) as { data: Record[]; next: string | null }
    }
    const all = await list('')
    expect(all.data).toHaveLength(3)
    const one = await list('?limit=2')
    const rest = await list(`?limit=2&after=${one.next}`)
    expect([...one.data, ...rest.data].map(({ id }) => id)).toEqual(all.data.map(({ id }) => id))
    expect((await list('?status=failed')).data).toHaveLength(1)
    expect((await list('?model=kling-v2-6')).data).toEqual([])
    const [newest] = all.data
    const since = Number(newest?.created_at)
    expect((await list(`?from=${since}`)).data).toContainEqual(newest as Record)
    expect((await list(`?from=${since + 1}`)).data).toEqual([])
    expect((await list(`?to=${since}`)).data).not.toContainEqual(newest as Record)
    expect(await list(`?from=${since}&to=${since}`)).toMatchObject({ error: { param: 'to' } })
  })
})

describe('tasks a day later', () => {
  const clock = movableClock()
  let moving: TestGateway
  beforeAll(async () => {
    moving = await startTestGateway({ clock })
  })
  afterEach(() => moving.assertBooks())
  afterAll(() => moving.close())

  const ask = async (prompt: string, query = '') =>
    (await (await moving.post(path + query, { ...wan, input: { prompt } })).json()) as Record
  const look = async (id: string) =>
    (await (await fetch(`${moving.url}${path}/${id}`, { headers: bearer(moving.key) })).json()) as Record

  test('the record of a task stays, without its links in any field (T-05)', async () => {
    const done = await ask('A fox.', '?wait=true')
    const link = done.content?.video_url ?? ''
    expect((await fetch(link)).status).toBe(200)
    clock.advance(25 * 60 * 60_000)
    const later = await look(done.id)
    expect(later).toMatchObject({ status: 'succeeded', content: { video_url: null, expired: true } })
    expect(JSON.stringify(later)).not.toContain(new URL(link).pathname)
    expect(later.output).toMatchObject({ task_status: 'SUCCEEDED' })
  })

  test('a task that never ends fails at its deadline and costs nothing (T-07)', async () => {
    const before = await moving.balance()
    const { id } = await ask('A fox. sandbox:stuck')
    expect((await moving.balance()).held).toBeGreaterThan(0n)
    clock.advance(25 * 60 * 60_000)
    await until(async () => (await look(id)).status === 'failed')
    expect((await look(id)).error?.code).toBe('timeout')
    expect(await moving.balance()).toEqual(before)
  })
})
