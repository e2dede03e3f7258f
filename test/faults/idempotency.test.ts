import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setLimits } from '../support/limits.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { dumpAll } from '../support/dump.ts'

const says = (content: string, more: Record<string, unknown> = {}) => ({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content }],
  ...more,
})

// A cold start of PostgreSQL on a busy machine.
const startTimeoutMs = 60_000

describe.each(['sqlite', 'postgres'] as const)('an Idempotency-Key on %s', (engine) => {
  let gateway: TestGateway
  let used = 0

  beforeAll(async () => {
    gateway = await startTestGateway({ engine, mode: 'leased' })
  }, startTimeoutMs)
  afterEach(() => gateway.assertBooks())
  afterAll(() => gateway.close())

  const newKey = () => `once-${used++}`
  const send = (body: unknown, key: string, bearer = gateway.key) =>
    gateway.post('/v1/chat/completions', body, { 'idempotency-key': key, authorization: `Bearer ${bearer}` })
  const callsWith = async (words: string) =>
    (await gateway.calls()).filter(({ body }) => JSON.stringify(body).includes(words)).length

  test('gives the same answer again, once paid', async () => {
    const key = newKey()
    const before = await gateway.balance()
    const first = await send(says('the first of two'), key)
    const cost = first.headers.get('x-turnpike-cost')
    const text = await first.text()
    const second = await send(says('the first of two'), key)
    expect(await second.text()).toBe(text)
    expect(second.headers.get('idempotent-replayed')).toBe('true')
    expect(await callsWith('the first of two')).toBe(1)
    const spent = before.posted - (await gateway.balance()).posted
    expect(spent).toBe(BigInt(Math.round(Number(cost) * 1e9)))
  })

  test('gives an answer again that is too long for a row, and keeps it unreadable', async () => {
    const key = newKey()
    const input = Array.from({ length: 20 }, (_, at) => `vectors by the megabyte, ${at}`)
    const ask = () =>
      gateway.post('/v1/embeddings', { model: 'text-embedding-3-large', input }, { 'idempotency-key': key })
    const first = await (await ask()).text()
    expect(first.length).toBeGreaterThan(1024 * 1024)
    const again = await ask()
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
    expect((await again.text()) === first).toBe(true)
    expect(await callsWith('vectors by the megabyte')).toBe(1)
    const kept = readdirSync(join(gateway.folder, 'artifacts'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.bin'))
      .map((name) => join(gateway.folder, 'artifacts', name))
    expect(kept).toHaveLength(1)
    for (const file of kept) expect(readFileSync(file).includes('embedding')).toBe(false)

    // As on a node that has another disk: it happened, and that is known.
    for (const file of kept) rmSync(file)
    const lost = (await (await ask()).json()) as { error: { code: string } }
    expect(lost.error.code).toBe('already_completed')
  })

  test('gives it again with the status that it was kept with', async () => {
    const key = newKey()
    const first = await send(says('kept with its status'), key)
    const requestId = first.headers.get('x-request-id') ?? ''
    await first.text()
    await gateway.store.db.updateTable('idempotency').set({ status: 202 }).where('request_id', '=', requestId).execute()
    const again = await send(says('kept with its status'), key)
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true'])
    await again.text()
  })

  test('of fifty at once, one runs', async () => {
    const key = newKey()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => send(says('fifty at once sandbox:delay=50'), key)),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([])
    for (const answer of answers) {
      const body = (await answer.json()) as { error?: { code: string } }
      if (answer.status !== 409) continue
      expect(body.error?.code).toBe('idempotency_in_progress')
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect(await callsWith('fifty at once')).toBe(1)
  })

  test('with another body is a mismatch, and on another account another request', async () => {
    const key = newKey()
    const other = await gateway.account({ dollars: '1' })
    expect((await send(says('body one'), key)).status).toBe(200)
    const mismatch = await send(says('body two'), key)
    expect(mismatch.status).toBe(422)
    expect(mismatch.headers.get('x-should-retry')).toBe('false')
    expect((await send(says('body two'), key, other.key)).status).toBe(200)
    expect(await callsWith('body two')).toBe(1)
  })

  test('a stream is not stored, and not run again', async () => {
    const key = newKey()
    const first = await send(says('streamed once', { stream: true }), key)
    await first.text()
    const repeat = async () => {
      const again = await send(says('streamed once', { stream: true }), key)
      expect(again.status).toBe(409)
      return { again, error: ((await again.json()) as { error: { code: string; message: string } }).error }
    }
    // The client may know of the end a moment before the record of its key does.
    await until(async () => (await repeat()).error.code !== 'idempotency_in_progress')
    const { again, error } = await repeat()
    expect(error.code).toBe('already_completed')
    expect(error.message).toContain(first.headers.get('x-request-id') ?? 'nothing')
    expect(again.headers.get('x-should-retry')).toBe('false')
    expect(await callsWith('streamed once')).toBe(1)
  })

  test('a failure that cost nothing frees it', async () => {
    const key = newKey()
    const body = says('fails at first sandbox:status=503')
    expect((await send(body, key)).status).toBe(502)
    expect((await send(body, key)).status).toBe(502)
    expect(await callsWith('fails at first')).toBe(2)
  })

  test('a failure that the vendor may have charged for is kept, and nobody is told to try again', async () => {
    const key = newKey()
    const body = says('cut while answering sandbox:cut=2')
    const first = await send(body, key)
    expect(first.status).toBe(502)
    expect(first.headers.get('x-should-retry')).toBe('false')
    expect((await send(body, key)).status).toBe(409)
    expect(await callsWith('cut while answering')).toBe(1)
  })

  test.each(['', ' spaced', 'x'.repeat(256), 'naïve'])('%j is no key', async (key) => {
    const response = await send(says('odd key'), key).catch(() => undefined)
    // Some of these the client itself refuses to send, and an empty header is one that was not sent.
    if (response === undefined || key === '') return
    expect([200, 400]).toContain(response.status)
    if (key.length > 255) expect(response.status).toBe(400)
  })

  test('a replay does not keep the place it took', async () => {
    const { key: bearer, keyId } = await gateway.account({ dollars: '1' })
    await setLimits(gateway, keyId, { concurrent: 1 })
    const key = newKey()
    for (let turn = 0; turn < 4; turn++) expect((await send(says('one place'), key, bearer)).status).toBe(200)
    expect((await send(says('another'), newKey(), bearer)).status).toBe(200)
  })

  test('keeps neither the key nor the answer where they could be read', async () => {
    const key = 'canary-idempotency-key'
    const answer = await (await send(says('canary-of-the-answer'), key)).text()
    expect(answer).toContain('canary-of-the-answer')
    await until(async () => (await callsWith('canary-of-the-answer')) === 1)
    const dump = await dumpAll(gateway)
    expect(dump).not.toContain(key)
    expect(dump).not.toContain('canary-of-the-answer')
  })
})
