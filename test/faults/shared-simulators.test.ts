import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { simulatedModels } from '../../src/simulated.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { freePort } from '../support/free-port.ts'
import { startTestGateway, type TestGateway, until } from '../support/gateway.ts'
import { videosOf } from '../support/ordered-videos.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { says } from '../support/streams.ts'
import { catalogue } from '../support/video-asks.ts'

// A database is made for it, and machines that test are busy.
setDefaultTimeout(120_000)

const hint = "at this node's own simulators"
const unanswered = 'no simulators answer at SANDBOX_URL'

describe('two nodes on one database that share simulators', () => {
  let databaseUrl: string
  let simulators: Sandbox
  let one: TestGateway
  let other: TestGateway
  const { order, ended, writtenOf } = videosOf(() => one)

  beforeAll(async () => {
    databaseUrl = await (await sharedPostgres()).freshDatabase()
    simulators = startSandbox({ port: 0, models: () => simulatedModels(catalogue, []) })
    const environment = { SANDBOX_URL: simulators.url }
    one = await startTestGateway({ databaseUrl, environment, mode: 'leased' })
    other = await startTestGateway({ databaseUrl, environment, mode: 'leased' })
  })
  afterAll(async () => {
    await one.close()
    await other.close()
    await simulators.stop()
    await (await sharedPostgres()).dropDatabase(databaseUrl)
  })

  test('every video is finished and charged once, whichever node polls it', async () => {
    const before = await one.balance()
    // Longer than the quick polls of the node that took the order: from then on either of them may ask.
    const prompt = 'A fox. sandbox:slow=4000'
    const ordered = await Promise.all(
      Array.from({ length: 10 }, () => order({ model: 'wan2.6-t2v', input: { prompt } })),
    )
    const videos = await Promise.all(ordered.map(({ id }) => ended(id)))
    expect(videos.map(({ status, error }) => error?.code ?? status)).toEqual(videos.map(() => 'succeeded'))

    const written = await Promise.all(videos.map(({ id }) => writtenOf(id)))
    const lines = written.map(({ bill, hold, entries }) => ({
      billed: bill,
      hold: hold.state,
      payable: entries['payable:dashscope'],
    }))
    expect(lines).toEqual(videos.map(() => ({ billed: ['0.5'], hold: 'settled', payable: '0.5' })))
    expect(await one.bill()).toHaveLength(10)
    await other.settleBooks()
    const after = await one.balance()
    expect(before.posted - after.posted).toBe(written.reduce((sum, { request }) => sum + request.cost, 0n))
    await one.assertBooks()
  })

  test('money that one node keeps ready for a busy account pays for a video on the other', async () => {
    const { id, key } = await one.account({ dollars: '0.51' })
    const headers = { authorization: `Bearer ${key}` }
    // What twenty of these would hold is kept ready on the node, and is missing from the half dollar of the video. They
    // follow each other too soon for the lease to become idle, and too slowly to spend the cent beside the half dollar.
    const ask = says('Hi sandbox:delay=500', { max_tokens: 2_000 })
    const chat = async () => (await one.post('/v1/chat/completions', ask, headers)).text()
    await chat()
    const state = { isBusy: true }
    const busy = (async () => {
      while (state.isBusy) await chat()
    })()
    const video = { model: 'wan2.6-t2v', duration: 5, resolution: '720p', input: { prompt: 'A fox.' } }
    try {
      await until(async () => (await other.post('/v1/videos/generations', video, headers)).status === 202)
    } finally {
      state.isBusy = false
      await busy
    }
    await until(async () => (await other.balance(id)).held === 0n)
    await one.assertBooks()
  })

  test('both nodes use the shared simulators and log no hint about their own', () => {
    expect([one.sandboxUrl, other.sandboxUrl]).toEqual([simulators.url, simulators.url])
    expect([...one.logged, ...other.logged].filter((line) => line.includes(hint) || line.includes(unanswered))).toEqual(
      [],
    )
  })
})

test('a node on PostgreSQL with simulators of its own logs what several nodes would need', async () => {
  const gateway = await startTestGateway({ engine: 'postgres' })
  await gateway.close()
  expect(gateway.logged.filter((line) => line.includes(hint) && line.includes('SANDBOX_URL'))).toHaveLength(1)
})

test('a node on SQLite logs nothing about shared simulators', async () => {
  const gateway = await startTestGateway()
  await gateway.close()
  expect(gateway.logged.join('')).not.toContain('SANDBOX_URL')
})

test.each(['nothing', 'another server'] as const)('a SANDBOX_URL where %s answers is logged', async (who) => {
  const stranger = Bun.serve({ hostname: '127.0.0.1', port: await freePort(), fetch: () => Response.json({}) })
  const url = `http://127.0.0.1:${stranger.port}`
  if (who === 'nothing') await stranger.stop(true)
  const gateway = await startTestGateway({ environment: { SANDBOX_URL: url } })
  try {
    await until(() => gateway.logged.some((line) => line.includes(unanswered) && line.includes(url)))
  } finally {
    await gateway.close()
    await stranger.stop(true)
  }
})
