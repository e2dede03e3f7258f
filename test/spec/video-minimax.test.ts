import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { formatDollars, nano, parseDollars } from '../../src/base/money.ts'
import { readMp4 } from '../../src/sandbox/video/testing.ts'
import { startTestGateway, type TestGateway, until } from '../support/gateway.ts'
import { hurried } from '../support/hurried.ts'
import { movableClock } from '../support/movable-clock.ts'
import { videosOf } from '../support/ordered-videos.ts'
import { attemptsOf, booked, recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { image, prompt } from '../support/video-asks.ts'

// Sold at twice the vendor's price, so that price and cost differ; and an operator's own model for subjects.
const yaml = `
models:
  - { id: minimax-hailuo-02, prices: { markup: "2" } }
  - { id: hailuo-subject, from: minimax-hailuo-02, upstreamModel: Subject-01, video: { kinds: [r2v], referencesMax: 1 } }
`

let gateway: TestGateway
const { idle } = videosOf(() => gateway)
const clock = movableClock()
beforeAll(async () => {
  gateway = await startTestGateway({ yaml, clock })
})
afterEach(async () => {
  await idle()
  await gateway.assertBooks()
})
afterAll(() => gateway.close())

const path = '/v1/videos/generations'

type Shown = {
  readonly id: string
  readonly status: string
  readonly file_id?: string
  readonly content?: { readonly video_url: string | null }
  readonly usage?: object
  readonly error?: { readonly code: string; readonly param?: string; readonly message: string } | null
}

const order = (body: object, query = '') => gateway.post(path + query, { model: 'minimax-hailuo-02', ...body })
const said = (words: string) => ({ input: { prompt: `A fox. ${words}` } })

async function made(body: object) {
  const response = await hurried(gateway, clock, order(body, '?wait=true'))
  const shown = (await response.json()) as Shown
  expect([response.status, shown.error ?? null]).toEqual([200, null])
  return { response, shown }
}

async function look(id: string): Promise<Shown> {
  const headers = { authorization: `Bearer ${gateway.key}` }
  return (await (await fetch(`${gateway.url}${path}/${id}`, { headers })).json()) as Shown
}

const callsTo = async (end: string) => (await gateway.calls()).filter((call) => call.path === `/minimax/v1/${end}`)
const orders = async () => (await callsTo('video_generation')).length
const dollars = (text: string) => parseDollars(text) ?? nano(0n)

describe('a video', () => {
  test.each<[object, string, string]>([
    [{ input: prompt }, '0.28', '0.56'],
    [{ input: prompt, duration: 10, resolution: '768P' }, '0.56', '1.12'],
    [{ input: { first_frame_image: image, last_frame_image: image }, resolution: '1080p' }, '0.49', '0.98'],
    [{ input: { ...prompt, media: [{ type: 'first_frame', url: image }] } }, '0.28', '0.56'],
    [
      { model: 'hailuo-subject', input: { ...prompt, media: [{ type: 'reference_image', url: image }] } },
      '0.28',
      '0.56',
    ],
  ])('the video is charged at our price, and its cost equals the vendor’s bill: %j', async (body, cost, price) => {
    const before = await gateway.balance()
    const { response, shown } = await made(body)
    expect(response.headers.get('x-turnpike-cost')).toBe(price)
    const { posted, held } = await gateway.balance()
    expect([before.posted - posted, held - before.held]).toEqual([dollars(price), 0n])
    const request = await recordOf(gateway, response)
    expect(request).toMatchObject({ cost: dollars(price), basis: 'vendor', capability: 'video', status: 202 })
    const [attempt, ...others] = await attemptsOf(gateway, response)
    expect(others).toEqual([])
    expect(attempt).toMatchObject({ vendor: 'minimax', vendor_cost: dollars(cost), status: 200 })
    const line = (await gateway.bill()).find(({ ref }) => ref === attempt?.id)
    expect(line?.cost).toBe(cost)
    const hold = gateway.store.db
      .selectFrom('hold')
      .selectAll()
      .where('id', '=', request.hold_id ?? '')
    expect(await hold.executeTakeFirstOrThrow()).toMatchObject({ state: 'settled', amount: dollars(price) })
    expect(shown).toMatchObject({ status: 'succeeded', file_id: expect.stringMatching(/^\d+$/) })
  })

  test('the link is looked up by the file id and leads to a video of the right length', async () => {
    const { shown } = await made({ input: prompt, duration: 10 })
    const video = await fetch(shown.content?.video_url ?? '')
    expect(readMp4(new Uint8Array(await video.arrayBuffer())).ms).toBe(10_000)
    expect(shown.usage).toMatchObject({ duration: 10, resolution: '768p' })
    const [asked] = (await callsTo('files/retrieve')).slice(-1)
    expect(asked?.headers['authorization']).toBe('Bearer sandbox')
  })

  test.each([
    'sandbox:file-status=429',
    'sandbox:file-status=503',
    'sandbox:poll-status=401',
    'sandbox:poll-status=429',
  ])('a failing status or file lookup is repeated until there is a link: %s', async (words) => {
    const { shown } = await made(said(words))
    expect(shown.content?.video_url).toStartWith('http')
  })
})

describe('requests that cost the customer nothing', () => {
  test.each<[object, string]>([
    [{ input: prompt, duration: 10, resolution: '1080p' }, 'duration'],
    [{ input: prompt, duration: 5 }, 'duration'],
    [{ input: prompt, resolution: '512p' }, 'resolution'],
    [{ input: prompt, aspect_ratio: '9:16' }, 'aspect_ratio'],
    [{ input: { ...prompt, negative_prompt: 'dark' } }, 'input.negative_prompt'],
    [{ input: prompt, parameters: { seed: 7 } }, 'parameters.seed'],
    [{ input: prompt, parameters: { audio: true } }, 'parameters.audio'],
    [{ input: prompt, parameters: { prompt_optimizer: 'yes' } }, 'parameters.prompt_optimizer'],
    [
      { input: { prompt: 'x', subject_reference: [{ type: 'character', image: [image] }] } },
      'input.subject_reference[0].image[0]',
    ],
    [{ model: 'hailuo-subject', input: prompt }, 'input.media'],
  ])('an unsupported field is refused by name before the vendor is called: %j', async (body, param) => {
    const refused = await refusedForFree(gateway, () => order(body))
    expect([refused.status, ((await refused.json()) as Shown).error?.param]).toEqual([400, param])
  })

  test.each([
    ['sandbox:status=400', 400],
    ['sandbox:status=429', 429],
    ['sandbox:status=402', 502],
    ['sandbox:leak', 502],
  ])('an order that the vendor refuses under a 200 is free: %s', async (words, status) => {
    const before = await gateway.balance()
    const refused = await order(said(words))
    const text = await refused.text()
    expect(refused.status).toBe(status)
    if (status === 400) expect(text).toContain('invalid params')
    expect(await gateway.balance()).toEqual(before)
    expect(await recordOf(gateway, refused)).toMatchObject({ status, cost: 0n })
  })

  test.each([
    ['sandbox:fail=1027', 'content_filtered'],
    ['sandbox:fail=1000', 'upstream_failed'],
    ['sandbox:vanish', 'upstream_task_lost'],
  ])('a video that fails or is lost at the vendor is free: %s', async (words, code) => {
    const before = await gateway.balance()
    const response = await hurried(gateway, clock, order(said(words), '?wait=true'))
    expect(await response.json()).toMatchObject({ status: 'failed', error: { code } })
    expect(await gateway.balance()).toEqual(before)
    const [attempt] = await attemptsOf(gateway, response)
    expect(formatDollars(attempt?.vendor_cost ?? nano(-1n))).toBe('0')
    expect((await gateway.bill()).find(({ ref }) => ref === attempt?.id)?.cost).toBe('0')
  })

  test('a success without a file fails the task, and the vendor’s charge is our loss', async () => {
    const [before, lost] = [await gateway.balance(), await booked(gateway, 'platform:loss')]
    const response = await order(said('sandbox:no-video'), '?wait=true')
    expect(await response.json()).toMatchObject({ status: 'failed', error: { code: 'upstream_no_output' } })
    expect(await gateway.balance()).toEqual(before)
    expect(lost - (await booked(gateway, 'platform:loss'))).toBe(dollars('0.28'))
  })

  test('a video that is being made cannot be cancelled', async () => {
    const { id } = (await (await order(said('sandbox:slow=3000'))).json()) as Shown
    const headers = { authorization: `Bearer ${gateway.key}` }
    const refused = await fetch(`${gateway.url}${path}/${id}`, { method: 'DELETE', headers })
    expect([refused.status, ((await refused.json()) as Shown).error?.code]).toEqual([409, 'not_cancellable'])
    await until(async () => (await look(id)).status === 'succeeded')
  })

  test.each(['sandbox:lost', 'sandbox:error200', 'sandbox:status=500', 'sandbox:charge-then-fail=500'])(
    'an order in doubt is never sent again, and fails at its deadline: %s',
    async (words) => {
      const before = { balance: await gateway.balance(), sent: await orders() }
      const answer = await order(said(words))
      expect(answer.status).toBe(202)
      const { id } = (await answer.json()) as Shown
      const task = gateway.store.db.selectFrom('task').selectAll().where('id', '=', id)
      const polled = until(async () => (await task.executeTakeFirstOrThrow()).polls >= 2)
      await hurried(gateway, clock, polled)
      expect(await task.executeTakeFirstOrThrow()).toMatchObject({ state: 'creating', in_doubt: true, sends: 1 })
      expect((await look(id)).status).toBe('submitted')
      expect((await gateway.balance()).held - before.balance.held).toBe(dollars('0.56'))
      clock.advance(25 * 60 * 60_000)
      const failed = until(async () => (await look(id)).status === 'failed')
      await hurried(gateway, clock, failed)
      expect((await look(id)).error?.code).toBe('timeout')
      expect(await gateway.balance()).toEqual(before.balance)
      expect((await orders()) - before.sent).toBe(1)
    },
  )
})
