import { describe, expect, test } from 'bun:test'
import { formatDollars, nano } from '../../src/base/money.ts'
import { readBill } from '../../src/billing/reconcile/bill.ts'
import { reconcile, verdictOn } from '../../src/billing/reconcile/reconcile.ts'
import { gatewayForTests, until } from '../support/gateway.ts'
import { jsonPost, sendRaw } from '../support/raw-socket.ts'
import { attemptsOf, lastRequestOf, recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { basic, billedFor, expectMp3, hear, instruct, say, speakers, speechPath } from '../support/speech.ts'
import { errorOf, payloads } from '../support/streams.ts'

// `POST /v1/audio/speech`: how audio is sent, what is charged for it, and what happens when it breaks off.

const gateway = gatewayForTests()

describe('usage of speech models', () => {
  test.each([['gpt-4o-mini-tts'], ['gemini-2.5-flash-preview-tts']])(
    '%s is charged for the tokens on the vendor’s bill',
    async (model) => {
      for (const response_format of ['mp3', 'wav']) {
        const { response } = await hear(gateway, { model, input: 'Hello there, how are you?', response_format })
        const { usage, basis, cost } = await recordOf(gateway, response)
        const [line] = await billedFor(gateway, response)
        expect(basis).toBe('vendor')
        expect(usage).toMatchObject({
          input: line?.units['input'] ?? -1,
          audioOutput: line?.units['audioOutput'] ?? -1,
        })
        expect(formatDollars(cost)).toBe(line?.cost ?? '')
      }
    },
  )

  test.each(speakers)('%s with stream_format sse sends audio as events and ends with usage', async (model) => {
    const { response, sound, type } = await hear(gateway, { model, stream_format: 'sse' })
    expect(type).toBe('text/event-stream; charset=utf-8')
    const events = payloads(sound.toString()).map((text) => JSON.parse(text) as { type: string; audio?: string })
    const deltas = events.slice(0, -1)
    expect(deltas.every((event) => event.type === 'speech.audio.delta')).toBe(true)
    const joined = Buffer.concat(deltas.map(({ audio = '' }) => Buffer.from(audio, 'base64')))
    if (model === instruct) expect(joined.toString('latin1', 0, 4)).toBe('RIFF')
    else expectMp3(joined)
    const { usage } = await recordOf(gateway, response)
    const total = (usage?.input ?? 0) + (usage?.audioOutput ?? 0)
    expect(events.at(-1)).toMatchObject({ type: 'speech.audio.done', usage: { total_tokens: total } })
  })
})

/** The audio as read from the socket: client libraries may lose what came right before a connection was cut. */
async function heardOf(body: { model?: string; input: string }) {
  const request = jsonPost(gateway, { model: basic, ...body }, speechPath)
  const { status, text, closed } = await sendRaw(gateway.url, request, { quietMs: 60_000 })
  const requestId = /\r\nx-request-id: (\S+)/i.exec(text)?.[1] ?? ''
  let bytes = 0
  for (let at = text.indexOf('\r\n\r\n') + 4; ;) {
    const [line, digits] = /^([\da-f]+)\r\n/i.exec(text.slice(at, at + 20)) ?? []
    if (line === undefined || digits === undefined) return { status, bytes, isCut: closed, requestId }
    const length = Number.parseInt(digits, 16)
    bytes += Math.min(length, text.length - at - line.length)
    at += line.length + length + 2
  }
}

describe('audio that is sent while it is made', () => {
  test.each([basic, 'tts-1', 'gemini-2.5-flash-preview-tts'])(
    '%s sends the first audio before the request is settled',
    async (model) => {
      const response = await say(gateway, { model, input: `${'A longer sentence. '.repeat(4)} sandbox:pace=50` })
      const reader = response.body?.getReader()
      const first = await reader?.read()
      expect(first?.value?.length).toBeGreaterThan(0)
      expect(gateway.openHolds()).toBe(1)
      while (!(await reader?.read())?.done);
      const basis = model === 'tts-1' ? 'estimated' : 'vendor'
      expect(await recordOf(gateway, response)).toMatchObject({ status: 200, basis, streamed: true })
    },
  )

  test('a stream that breaks off is cut off, not closed, and its characters are charged', async () => {
    const response = await say(gateway, { input: `${'A longer sentence. '.repeat(20)} sandbox:pace=20 sandbox:cut=3` })
    expect(response.status).toBe(200)
    const failure: unknown = await response.arrayBuffer().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Error)
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ status: 502, basis: 'estimated', usage: { character: 410 } })
    expect(record.cost).toBeGreaterThan(0n)
  })

  // Each piece is a quarter of a second; none may be lost in the encoder or with the connection.
  test.each([
    ['cut=1', 0.25],
    ['eof=1', 0.25],
    ['cut=2', 0.5],
  ])('sandbox:%s after the first audio delivers what was made and charges an estimate', async (word, seconds) => {
    const { bytes, isCut, requestId } = await heardOf({ input: `Hello there. sandbox:${word}` })
    expect(isCut).toBe(true)
    // 96 kbit/s.
    expect(bytes / 12_000).toBeGreaterThanOrEqual(seconds)
    expect(await recordOf(gateway, requestId)).toMatchObject({
      status: 502,
      basis: 'estimated',
      usage: { character: 26 },
    })
  })

  test.each(speakers)('%s is charged only if the client received audio', async (model) => {
    for (const word of [
      'cut=1',
      'eof=1',
      'midstream-error',
      'pace=5 sandbox:midstream-error',
      'pace=5 sandbox:cut=1',
    ]) {
      const input = `${'A longer sentence. '.repeat(4)}sandbox:${word}`
      const { status, bytes, requestId } = await heardOf({ model, input })
      const { cost } = await recordOf(gateway, requestId)
      expect({ word, isHeard: status === 200 && bytes > 0 }).toEqual({ word, isHeard: cost > 0n })
    }
  })

  test('an event stream that breaks off ends with an error event', async () => {
    const response = await say(gateway, {
      input: `${'A longer sentence. '.repeat(20)} sandbox:pace=20 sandbox:cut=3`,
      stream_format: 'sse',
    })
    const events = payloads(await response.text())
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { type: 'upstream_error' } })
    expect(events.join('')).not.toContain('speech.audio.done')
  })

  test('a wav that breaks off is a 502 and costs nothing', async () => {
    const response = await say(gateway, { input: 'A longer sentence. sandbox:cut=3', response_format: 'wav' })
    expect(await errorOf(response)).toMatchObject({ status: 502 })
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  })

  test.each(['sandbox:status=500', 'sandbox:html', 'sandbox:error200', 'sandbox:cut=0'])(
    '%s before any audio is a 502 and costs nothing',
    async (word) => {
      for (const model of [basic, 'tts-1', 'gpt-4o-mini-tts', 'gemini-2.5-flash-preview-tts']) {
        const response = await say(gateway, { model, input: `Hello ${word}` })
        expect((await errorOf(response)).status).toBe(502)
        expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
      }
    },
  )

  test('a later part that keeps failing is retried, and the part before it is charged', async () => {
    const sentence = 'Every sentence is said once. '
    const response = await say(gateway, { input: `${sentence.repeat(25)}sandbox:status=500 ${sentence}` })
    expect(response.status).toBe(200)
    expect(await response.arrayBuffer().catch(() => 'cut off')).toBe('cut off')
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 500, 500, 500])
    expect(await recordOf(gateway, response)).toMatchObject({ status: 502, usage: { character: 580 } })
  })

  test('a client that leaves pays for the part it heard, and no further part is begun', async () => {
    const account = await gateway.account()
    const abort = new AbortController()
    const response = await fetch(gateway.url + speechPath, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: basic, input: `${'A longer sentence. '.repeat(60)}sandbox:pace=50` }),
      signal: abort.signal,
    })
    await response.body?.getReader().read()
    abort.abort()
    await until(() => gateway.openHolds() === 0)
    const record = await lastRequestOf(gateway, account.id)
    expect(record).toMatchObject({ status: 499, usage: { character: 589 } })
    expect(record?.cost).toBe(nano(5_890_000n))
  })

  // The vendor has made the part and charges for it, although nothing was sent: the header waits for the length.
  test.each([
    ['after a part was made pays for it', 'A longer sentence. '.repeat(31), { basis: 'vendor', cost: 6_773_500n }],
    ['before anything was made pays nothing', '', { cost: 0n }],
  ])('a client that leaves a wav %s', async (_, said, record) => {
    const account = await gateway.account()
    const before = (await gateway.calls()).length
    const abort = new AbortController()
    const sent = fetch(gateway.url + speechPath, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: instruct, input: `${said}sandbox:delay=60000` }),
      signal: abort.signal,
    }).catch(() => 'left')
    // The case before this one has ended with the same words.
    await until(async () => (await gateway.calls()).slice(before).at(-1)?.text.includes('sandbox:delay') === true)
    abort.abort()
    expect(await sent).toBe('left')
    await until(() => gateway.openHolds() === 0)
    expect(await lastRequestOf(gateway, account.id)).toMatchObject({ status: 499, ...record })
  })

  test('usage that the vendor does not report is estimated and marked as such', async () => {
    for (const model of [basic, 'tts-1', 'gpt-4o-mini-tts', 'gemini-2.5-flash-preview-tts']) {
      const { response } = await hear(gateway, { model, input: 'Hello there. sandbox:nousage' })
      expect(await recordOf(gateway, response)).toMatchObject({ basis: 'estimated', status: 200 })
    }
  })

  test('reconciliation explains a bill that differs where the vendor reported no usage', async () => {
    const refs: string[] = []
    for (const word of ['usage=7', 'zero']) {
      const { response } = await hear(gateway, { model: 'tts-1', input: `Hello there. sandbox:${word}` })
      expect(await recordOf(gateway, response)).toMatchObject({
        basis: 'estimated',
        usage: { character: 21 + word.length },
      })
      refs.push(...(await attemptsOf(gateway, response)).map(({ id }) => id))
    }
    const bill = readBill(await (await fetch(`${gateway.sandboxUrl}/__bill`)).text())
    const report = await reconcile({ store: gateway.store, bill, priceLists: () => undefined, requestMsMax: 60_000 })
    const found = report.findings.filter(({ ref }) => refs.includes(ref))
    expect(found.map(({ kind, why }) => `${kind}: ${why}`)).toEqual(
      refs.map(() => 'estimated: the vendor reported no usage'),
    )
    expect(verdictOn({ ...report, findings: found })).toBe(2)
  })
})

test.each(['mp3', 'wav'])('a repeated Idempotency-Key is a 409 and costs nothing: %s', async (format) => {
  const headers = { 'idempotency-key': `say-once-${format}` }
  const say = () => gateway.post(speechPath, { model: basic, input: 'Once.', response_format: format }, headers)
  await (await say()).arrayBuffer()
  const second = await refusedForFree(gateway, say)
  expect(await errorOf(second)).toMatchObject({ status: 409, code: 'already_completed' })
})
