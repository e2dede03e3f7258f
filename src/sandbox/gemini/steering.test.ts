import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { splitTokens } from '../tokens.ts'
import { answerOf, array, errorOf, events, eventsOf, finishOf, openGemini, splitEvents, textOf } from './testing.ts'

const { sandbox, say, bill, clearBill } = openGemini()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const stream = { method: events }

/** Reads what arrives before the connection dies, and checks that it dies. */
async function readBroken(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true })
  } catch {
    return text
  }
  throw new Error('the stream ended cleanly')
}

describe('steering words that make a request fail', () => {
  test.each([
    ['RESOURCE_EXHAUSTED', 429, 'RESOURCE_EXHAUSTED'],
    ['CREDITS_DEPLETED', 429, 'RESOURCE_EXHAUSTED'],
    ['API_KEY_INVALID', 400, 'INVALID_ARGUMENT'],
    ['FAILED_PRECONDITION', 400, 'FAILED_PRECONDITION'],
    ['BILLING_DISABLED', 403, 'PERMISSION_DENIED'],
    ['UNAVAILABLE', 503, 'UNAVAILABLE'],
    ['DEADLINE_EXCEEDED', 504, 'DEADLINE_EXCEEDED'],
    ['made_up', 400, 'INVALID_ARGUMENT'],
  ])('fail=%s answers with the error of that name, which costs nothing', async (word, http, status) => {
    for (const sent of [{}, stream]) {
      expect(await errorOf(say(`sandbox:fail=${word}`, {}, sent))).toMatchObject({ http, code: http, status })
    }
    expect((await bill()).map((line) => [line.status, line.cost])).toEqual([
      [http, '0'],
      [http, '0'],
    ])
  })

  test.each([400, 401, 403, 404, 409, 429, 499, 500, 503, 504, 529])(
    'status=%d answers with that status and no retry-after',
    async (status) => {
      const response = await say(`sandbox:status=${status}`)
      expect(response.headers.get('retry-after')).toBeNull()
      expect(await errorOf(response)).toMatchObject({
        http: status,
        code: status,
        status: expect.stringMatching(/^[A-Z_]+$/),
      })
    },
  )

  test('a 429 has a retry delay unless the credits are depleted', async () => {
    const { details = [] } = await errorOf(say('sandbox:status=429'))
    expect(details.find((detail) => detail['@type'].endsWith('.RetryInfo'))).toMatchObject({ retryDelay: '1.2s' })
    expect(details.some((detail) => detail['@type'].endsWith('.QuotaFailure'))).toBe(true)
    expect(await errorOf(say('sandbox:fail=CREDITS_DEPLETED'))).not.toHaveProperty('details')
  })

  test.each([
    ['a plain call', 'generateContent', '', false],
    ['a stream of events', events, '', false],
    ['a stream of events with error-array', events, 'sandbox:error-array', true],
    ['a stream in the form of an array', array, '', true],
  ])('an error in %s comes as an object or in an array', async (_, method, more, isArray) => {
    expect(await errorOf(say(`sandbox:status=503 ${more}`, {}, { method }))).toMatchObject({ http: 503, isArray })
  })

  test('charge-then-fail fails the request and bills the answer', async () => {
    expect(await errorOf(say('hello sandbox:charge-then-fail=500', {}, stream))).toMatchObject({
      http: 500,
      status: 'INTERNAL',
    })
    const [line, ...others] = await bill()
    expect([line?.status, line?.cost === '0', others]).toEqual([500, false, []])
  })

  test('html, error200, leak, headers and status=502 work as in the other protocols', async () => {
    expect(await (await say('sandbox:html')).text()).toContain('<html>')
    expect(await errorOf(say('sandbox:error200'))).toMatchObject({ http: 200, status: 'INTERNAL' })
    const leak = await errorOf(say('sandbox:leak', {}, { key: 'very-secret' }))
    expect(leak).toMatchObject({ http: 400, message: expect.stringContaining('very-secret') })
    expect((await say('sandbox:headers')).headers.get('x-odd-50')).toBe('odd value 50')
    expect((await say('sandbox:status=502')).headers.get('content-type')).toStartWith('text/html')
  })

  test('a steering word in the system instruction applies', async () => {
    const systemInstruction = { parts: [{ text: 'sandbox:status=503' }] }
    expect((await say('hi', { systemInstruction })).status).toBe(503)
  })
})

describe('steering words that withhold the answer', () => {
  test('blocked answers with a 200 without candidates and bills the prompt', async () => {
    const plain = await answerOf(say('sandbox:blocked'))
    expect(plain).not.toHaveProperty('candidates')
    expect(plain.promptFeedback?.blockReason).toBe('SAFETY')
    expect(plain.usageMetadata.totalTokenCount).toBe(plain.usageMetadata.promptTokenCount)
    expect(await eventsOf(say('sandbox:blocked', {}, stream))).toEqual([plain])
    const lines = await bill()
    for (const line of lines)
      expect(line.units).toMatchObject({ input: plain.usageMetadata.promptTokenCount, output: 0 })
    expect(lines.length).toBe(2)
  })

  test.each([
    ['refusal', 'SAFETY'],
    ['finish=RECITATION', 'RECITATION'],
    ['finish=MALFORMED_FUNCTION_CALL', 'MALFORMED_FUNCTION_CALL'],
  ])('%s ends the answer without content, after a stream has sent some of it', async (word, finish) => {
    const plain = await answerOf(say(`hello sandbox:${word}`))
    expect(plain.candidates?.[0]).not.toHaveProperty('content')
    expect(finishOf(plain)).toBe(finish)
    const answers = await eventsOf(say(`hello sandbox:${word}`, {}, stream))
    expect([answers.length, finishOf(answers.at(-1))]).toEqual([4, finish])
    expect(answers.at(-1)?.candidates?.[0]).not.toHaveProperty('content')
    const [first, second] = await bill()
    expect(first?.units.output).toBe(3)
    expect(second).toEqual(first)
  })
})

describe('steering words that break a stream', () => {
  test('cut=0 closes the connection before the response headers, without cost', async () => {
    const gone = await say('sandbox:cut=0', {}, stream).catch(() => 'gone')
    expect(gone).toBe('gone')
    expect(await bill()).toMatchObject([{ status: 200, cost: '0' }])
  })

  test.each([1, 5])('cut=%d closes the connection after that many events and bills them', async (count) => {
    const sent = splitEvents(await readBroken(await say(`sandbox:cut=${count}`, {}, stream)))
    expect(sent.length).toBe(count)
    expect((await bill())[0]?.units.output).toBe(count)
  })

  test('cut ends a plain answer in the middle of its body and leaves an array open', async () => {
    expect(await readBroken(await say('sandbox:cut=1'))).toStartWith('{')
    expect(await readBroken(await say('sandbox:cut=2', {}, { method: array }))).toMatch(/^\[\{.*\}$/s)
  })

  test('eof ends the stream cleanly without a finish reason', async () => {
    const answers = await eventsOf(say('sandbox:eof=4', {}, stream))
    expect([answers.length, answers.some(finishOf)]).toEqual([4, false])
    expect(await (await say('sandbox:eof=4', {}, { method: array })).json().catch(() => 'no JSON')).toBe('no JSON')
    expect((await bill()).map((line) => line.units.output)).toEqual([4, 4])
  })

  test('midstream-error sends an error as the last event', async () => {
    const sent = splitEvents(await (await say('sandbox:midstream-error', {}, stream)).text())
    expect([sent.length, JSON.parse(sent.at(-1) ?? '')]).toMatchObject([
      4,
      { error: { code: 500, status: 'INTERNAL' } },
    ])
    const elements: unknown[] = await (await say('sandbox:midstream-error', {}, { method: array })).json()
    expect([elements.length, elements.at(-1)]).toMatchObject([4, { error: { code: 500 } }])
  })

  test('malformed makes one event invalid JSON', async () => {
    const sent = splitEvents(await (await say('sandbox:malformed', {}, stream)).text())
    expect(sent.filter((event) => !event.endsWith('}')).length).toBe(1)
    expect(sent.at(-1)).toContain('"finishReason":"STOP"')
  })

  test('endless sends the answer until the client leaves', async () => {
    for (const sent of [{}, stream]) {
      const reader = (await say('sandbox:endless', {}, sent)).body?.getReader()
      for (let index = 0; index < 50; index += 1) expect((await reader?.read())?.done).toBe(false)
      await reader?.cancel()
    }
  })
})

describe('steering words for usage and content', () => {
  test('nousage leaves the usage out of the answer but bills it', async () => {
    expect(await answerOf(say('sandbox:nousage'))).not.toHaveProperty('usageMetadata')
    expect(await (await say('sandbox:nousage', {}, stream)).text()).not.toContain('usageMetadata')
    expect((await bill()).map((line) => line.cost === '0')).toEqual([false, false])
  })

  test('zero reports and bills no tokens', async () => {
    const { usageMetadata } = await answerOf(say('sandbox:zero'))
    expect(usageMetadata).toMatchObject({ promptTokenCount: 0, totalTokenCount: 0 })
    const answers = await eventsOf(say('sandbox:zero', {}, stream))
    for (const answer of answers) expect(answer.usageMetadata.totalTokenCount).toBe(0)
    expect((await bill()).map((line) => line.cost)).toEqual(['0', '0'])
  })

  test.each([
    [777, 777],
    [-5, 0],
  ])('usage=%d is reported unchanged and billed as %d', async (told, billed) => {
    expect((await answerOf(say(`sandbox:usage=${told}`))).usageMetadata.candidatesTokenCount).toBe(told)
    const answers = await eventsOf(say(`sandbox:usage=${told}`, {}, stream))
    expect(answers.at(-1)?.usageMetadata.candidatesTokenCount).toBe(told)
    expect((await bill()).map((line) => line.units.output)).toEqual([billed, billed])
  })

  test.each([1, 100, 1_000])('tokens=%d answers with that many tokens', async (tokens) => {
    for (const answer of [
      await answerOf(say(`sandbox:tokens=${tokens}`)),
      (await eventsOf(say(`sandbox:tokens=${tokens}`, {}, stream))).at(-1),
    ]) {
      expect([answer?.usageMetadata.candidatesTokenCount, finishOf(answer)]).toEqual([tokens, 'STOP'])
    }
  })

  test('dated, unicode and big change the model version and the text', async () => {
    expect((await answerOf(say('sandbox:dated'))).modelVersion).toBe('gemini-2.0-flash-01-2026')
    const odd = await eventsOf(say('sandbox:unicode', {}, stream))
    expect(textOf(odd)).toMatch(/[\u0900-\uffff]/)
    expect(odd.at(-1)?.usageMetadata.candidatesTokenCount).toBe(splitTokens(textOf(odd)).length)
    const big = await eventsOf(say('sandbox:big=1000000', {}, stream))
    expect(textOf(big[0] ?? []).length).toBe(1_000_000)
  })

  test('drip leaves the stream readable, and crlf changes its line ends', async () => {
    const plain = textOf(await eventsOf(say('sandbox:unicode sandbox:drip=7', {}, stream)))
    expect(plain).not.toBe('')
    const text = await (await say('sandbox:crlf', {}, stream)).text()
    expect(text).toStartWith(': ping\r\ndata:{')
    expect(text.replaceAll('\r\n', '')).not.toContain('\n')
  })

  test('delay waits before the response headers, pace between two events', async () => {
    const start = performance.now()
    await say('sandbox:delay=30')
    await eventsOf(say('sandbox:pace=10 sandbox:tokens=2', {}, stream))
    expect(performance.now() - start).toBeGreaterThanOrEqual(49)
  })
})
