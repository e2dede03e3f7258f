import { afterEach, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { nano, parseDollars } from '../../src/base/money.ts'
import { changeKey } from '../../src/store/keys.ts'
import { startTestGateway, type TestGateway, until } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'

let gateway: TestGateway | undefined

afterEach(async () => {
  await gateway?.close()
  gateway = undefined
})

const wan = { model: 'wan2.6-t2v', duration: 5, resolution: '720p', input: { prompt: 'A fox.' } }
const half = parseDollars('0.5') ?? nano(0n)

async function begin(mode: 'leased' | 'strict', engine: 'sqlite' | 'postgres', dollars: string) {
  gateway = await startTestGateway({ mode, engine })
  const { id, key, keyId } = await gateway.account({ dollars })
  const headers = { authorization: `Bearer ${key}` }
  const used = gateway
  return {
    gateway: used,
    id,
    key,
    keyId,
    order: (more: object = {}) => used.post('/v1/videos/generations', { ...wan, ...more }, headers),
    chat: (max_tokens = 10) => {
      const messages = [{ role: 'user', content: 'Hello!' }]
      return used.post('/v1/chat/completions', { model: 'gpt-4o-mini', max_tokens, messages }, headers)
    },
  }
}

test.each(['sqlite', 'postgres'] as const)(
  'money that a node has leased and not used is available to a video task, on %s',
  async (engine) => {
    const world = await begin('leased', engine, '0.51')
    // With the first request as much is leased as twenty more would hold, and kept ready for them: 2.6 cents.
    expect((await world.chat(2_000)).status).toBe(200)
    expect((await world.order()).status).toBe(202)
    expect((await world.order()).status).toBe(402)
    await until(async () => (await world.gateway.balance(world.id)).held === 0n)
    const { posted } = await world.gateway.balance(world.id)
    expect(posted).toBeLessThan((parseDollars('0.51') ?? 0n) - half)
    expect(posted).toBeGreaterThan(0n)
    await world.gateway.assertBooks()
  },
  120_000,
)

test('the holds of video tasks count against the spending cap of the key, for tasks and for other requests', async () => {
  const world = await begin('strict', 'sqlite', '100')
  // The video costs 0.5 dollars, and 10,000 tokens of the chat model 0.006.
  const cap = { amount: parseDollars('0.505') ?? nano(0n), period: 'day' } as const
  await changeKey(world.gateway.store, { id: world.keyId, actor: 'test', cap })
  const slow = { input: { prompt: 'A fox. sandbox:slow=3000' } }
  expect((await world.order(slow)).status).toBe(202)
  for (const refused of [await world.order(slow), await world.chat(10_000)]) {
    expect(refused.status).toBe(402)
    expect(await refused.text()).toContain('spending cap')
  }
  expect((await world.chat()).status).toBe(200)
  await until(async () => (await world.gateway.balance(world.id)).held === 0n)
  await world.gateway.assertBooks()
})

test('a vendor that fails after it made the task sells one video to a client that retries', async () => {
  const world = await begin('strict', 'sqlite', '100')
  const client = new OpenAI({ apiKey: world.key, baseURL: `${world.gateway.url}/v1`, maxRetries: 3 })
  const body = { model: 'kling-v2-6', input: { prompt: 'A fox. sandbox:charge-then-fail=500' } }
  const { id } = await client.post<{ id: string }>('/videos/generations', { body })
  const task = () => world.gateway.store.db.selectFrom('task').selectAll().execute()
  await until(async () => (await task()).every(({ state }) => state === 'succeeded'))
  expect(await task()).toMatchObject([{ id, sends: 1 }])
  expect(await world.gateway.bill()).toHaveLength(1)
  await world.gateway.assertBooks()
}, 120_000)

test.each([20, -20])(
  'a video whose answer was lost is not ordered again by a clock that is %i minutes ahead',
  async (ahead) => {
    const clock = movableClock()
    clock.setBack(-ahead * 60_000)
    gateway = await startTestGateway({ clock })
    const { store, logged } = gateway
    // Models of vendors whose lists of tasks do not have our references.
    const models = ['wan2.6-t2v', 'doubao-seedance-1-5-pro-251215', 'sora-2']
    for (const model of models) {
      const ordered = await gateway.post('/v1/videos/generations', { model, input: { prompt: 'A fox. sandbox:lost' } })
      expect(ordered.status).toBe(202)
    }
    const isUnsure = (id: string) =>
      logged.some((line) => line.includes('it is not known whether the vendor has this task') && line.includes(id))
    const tasks = () => store.db.selectFrom('task').select(['id', 'lost', 'sends']).execute()
    await until(async () => (await tasks()).every(({ id, lost }) => lost > 0 || isUnsure(id)))
    expect((await tasks()).filter(({ id, lost, sends }) => lost === 0 && sends === 1 && isUnsure(id))).toHaveLength(3)
  },
  60_000,
)
