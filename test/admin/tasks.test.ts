import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway, until } from '../support/gateway.ts'
import { operatorOf, type JsonClient } from '../support/operator.ts'

let gateway: TestGateway
let operator: JsonClient

beforeAll(async () => {
  gateway = await startTestGateway()
  operator = operatorOf(gateway)
})
afterAll(async () => {
  await gateway.assertBooks()
  await gateway.close()
})

type Shown = { id: string; account: string; state: string; held: string | null; channel: string }

const wan = { model: 'wan2.6-t2v', duration: 5, resolution: '720p' }

test('operators see every task with its hold, its cost and its channel, and never its prompt', async () => {
  const prompt = 'a-secret-fox sandbox:slow=3000'
  const placed = (await (await gateway.post('/v1/videos/generations', { ...wan, input: { prompt } })).json()) as Shown
  const shown = await operator.get<Shown>(`/admin/tasks/${placed.id}`)
  expect(shown).toMatchObject({
    id: placed.id,
    account: gateway.accountId,
    held: '0.5',
    cost: null,
    channel: 'dashscope',
    webhook: false,
    finished_at: null,
    next_poll_at: expect.any(Number),
  })
  const { data } = await operator.get<{ data: Shown[] }>('/admin/tasks')
  expect(data.map(({ id }) => id)).toEqual([placed.id])
  expect(JSON.stringify([shown, data])).not.toContain('a-secret-fox')

  const count = async (query: string) => (await operator.get<{ data: Shown[] }>(`/admin/tasks?${query}`)).data.length
  expect(await count(`account=${gateway.accountId}&model=wan2.6-t2v&in_doubt=false`)).toBe(1)
  expect(await count('state=failed')).toBe(0)
  await until(async () => (await count('state=succeeded')) === 1)
  expect(await operator.get<Shown>(`/admin/tasks/${placed.id}`)).toMatchObject({
    state: 'succeeded',
    held: null,
    cost: '0.5',
    finished_at: expect.any(Number),
    next_poll_at: null,
  })
  expect((await operator.call('GET', '/admin/tasks/vid_0')).status).toBe(404)
  expect((await operator.call('GET', '/admin/tasks?state=lost')).status).toBe(400)
  expect((await operator.call('GET', '/admin/tasks?account=nobody')).status).toBe(400)
})

test('operators see how often a vendor sent an unknown task state', async () => {
  type Channel = { id: string; unknown_task_states: { count: number; last: string | null } }
  const heard = async () => {
    const { data } = await operator.get<{ data: Channel[] }>('/admin/channels?limit=100')
    return data.find(({ id }) => id === 'dashscope')?.unknown_task_states
  }
  expect(await heard()).toEqual({ count: 0, last: null })
  const input = { prompt: 'A fox. sandbox:odd-state=DREAMING sandbox:slow=3000' }
  const order = { ...wan, input, webhook_url: 'http://127.0.0.1:9/hook' }
  const placed = (await (await gateway.post('/v1/videos/generations', order)).json()) as Shown
  expect(await operator.get(`/admin/tasks/${placed.id}`)).toMatchObject({ webhook: true })
  await until(async () => (await operator.get<Shown>(`/admin/tasks/${placed.id}`)).state === 'succeeded')
  expect(await heard()).toMatchObject({ count: expect.any(Number), last: 'DREAMING' })
  expect((await heard())?.count).toBeGreaterThan(0)
})
