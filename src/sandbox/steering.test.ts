import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { lines, sendRaw } from '../../test/support/raw-socket.ts'
import { bodyDecoderFor } from '../base/http/body-decoder.ts'
import {
  type Chunk,
  chunksOf,
  completionOf,
  contentOf,
  errorOf,
  eventsOf,
  openSandbox,
  splitEvents,
} from './testing.ts'
import { splitTokens } from './tokens.ts'

const { sandbox, say, post, bill, clearBill, calls } = openSandbox()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const stream = { stream: true, stream_options: { include_usage: true } }

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

/** A body decoded from its chunks, and the size of each chunk. */
function unchunked(bytes: Buffer): { text: string; sizes: number[] } {
  const parts: Uint8Array[] = []
  bodyDecoderFor({ kind: 'chunked' }).take(bytes, parts)
  return { text: Buffer.concat(parts).toString(), sizes: parts.map(({ length }) => length) }
}

const contentEvents = (events: readonly string[]): number =>
  events.filter((event) => /"delta":\{"content":"[^"]/.test(event)).length

describe('steering words that make a request fail', () => {
  test.each([
    ['invalid_api_key', 401, 'invalid_request_error', 'invalid_api_key'],
    ['insufficient_quota', 429, 'insufficient_quota', 'insufficient_quota'],
    ['rate_limit_exceeded', 429, 'requests', 'rate_limit_exceeded'],
    ['server_is_overloaded', 503, 'service_unavailable_error', 'server_is_overloaded'],
    ['context_length_exceeded', 400, 'invalid_request_error', 'context_length_exceeded'],
    ['content_filter', 400, 'invalid_request_error', 'content_policy_violation'],
    ['model_not_found', 404, 'invalid_request_error', 'model_not_found'],
    ['made_up', 400, 'invalid_request_error', 'made_up'],
  ])('fail=%s answers with the error of that name, which costs nothing', async (word, status, type, code) => {
    for (const more of [{}, stream]) {
      expect(await errorOf(say(`sandbox:fail=${word}`, more))).toMatchObject({ status, type, code, param: null })
    }
    expect((await bill()).map((line) => [line.status, line.cost])).toEqual([
      [status, '0'],
      [status, '0'],
    ])
  })

  test.each([400, 401, 402, 403, 404, 409, 422, 429, 500, 503, 529])(
    'status=%d answers with that status and an error in JSON',
    async (status) => {
      const response = await say(`sandbox:status=${status}`)
      expect(response.status).toBe(status)
      expect(response.headers.get('retry-after')).toBe(status === 429 ? '1' : null)
      expect(await response.json()).toMatchObject({ error: { message: expect.any(String), param: null } })
    },
  )

  test.each([400, 429, 500, 503, 599])('fail=%d is the same as that status', async (status) => {
    const [failed, asked] = [await say(`sandbox:fail=${status}`), await say(`sandbox:status=${status}`)]
    expect([failed.status, await failed.json()]).toEqual([status, await asked.json()])
    expect((await bill()).map((line) => line.cost)).toEqual(['0', '0'])
  })

  test.each(['399', '600', '4000'])('fail=%s is a code, since no refusal has that status', async (code) => {
    expect(await errorOf(say(`sandbox:fail=${code}`))).toMatchObject({ status: 400, code })
  })

  test('status=502 answers with an HTML page and status=302 with a redirect', async () => {
    const page = await say('sandbox:status=502')
    expect([page.status, page.headers.get('content-type')]).toEqual([502, 'text/html; charset=utf-8'])
    const away = await fetch(`${sandbox.baseUrl('openai')}/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer k' },
      body: JSON.stringify({ model: 'plain', messages: [{ role: 'user', content: 'sandbox:status=302' }] }),
      redirect: 'manual',
    })
    expect([away.status, away.headers.get('location')]).toEqual([302, 'http://127.0.0.1:9/elsewhere'])
  })

  test('steering words in the system message apply unless the user message overrides them', async () => {
    const system = { role: 'system', content: 'sandbox:status=503' }
    for (const [content, status] of [
      ['hi', 503],
      ['sandbox:status=500', 500],
    ] as const) {
      expect((await post({ model: 'plain', messages: [system, { role: 'user', content }] })).status).toBe(status)
    }
  })

  test('charge-then-fail fails the request and bills the answer', async () => {
    const failed = await say('hello sandbox:charge-then-fail=500', stream)
    expect(failed.status).toBe(500)
    const [line, ...others] = await bill()
    expect(line).toMatchObject({ status: 500, units: { output: expect.any(Number) } })
    expect(line?.cost).not.toBe('0')
    expect(others).toEqual([])
  })

  test('only=openai makes every other vendor ignore the steering words', async () => {
    const words = 'hello sandbox:only=openai sandbox:charge-then-fail=500 sandbox:usage=77'
    expect((await say(words, stream)).status).toBe(500)
    const other = await say(words, { model: 'reasoner', ...stream }, { vendor: 'deepseek' })
    expect(other.status).toBe(200)
    await other.text()
    const [first, second] = await bill()
    expect(first?.units.output).toBe(77)
    expect(second).toMatchObject({ status: 200, units: { output: expect.any(Number) } })
    expect(second?.units.output).not.toBe(77)
    // The recorded call still has the steering words.
    expect((await calls()).at(-1)?.text).toContain(words)
  })

  test('html and error200 answer with a 200 that is no completion and costs nothing', async () => {
    const page = await say('sandbox:html')
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<html>')])
    const odd = await say('sandbox:error200')
    expect([odd.status, await odd.json()]).toEqual([
      200,
      { error: expect.objectContaining({ code: 'internal_error' }) },
    ])
    expect((await bill()).map((line) => line.cost)).toEqual(['0', '0'])
  })

  test('leak repeats the key in the error message', async () => {
    const error = await errorOf(say('sandbox:leak', {}, { key: 'very-secret' }))
    expect(error).toMatchObject({ status: 401, message: expect.stringContaining('very-secret') })
  })

  test('gzip sends a body that unpacks to 100 MB', async () => {
    const response = await say('sandbox:gzip')
    let bytes = 0
    for await (const chunk of response.body ?? []) bytes += chunk.length
    expect(bytes).toBe(100 * 1024 * 1024)
  })

  test('headers adds cookies and unusual headers', async () => {
    const { headers } = await say('sandbox:headers')
    expect(headers.getSetCookie().length).toBe(2)
    expect(headers.get('x-odd-50')).toBe('odd value 50')
  })

  test('delay waits before the response headers are sent', async () => {
    const start = performance.now()
    await say('sandbox:delay=30')
    expect(performance.now() - start).toBeGreaterThanOrEqual(29)
  })
})

describe('steering words that break a stream', () => {
  test.each([0, 1, 5])('cut=%d closes the connection after that many words and bills them', async (count) => {
    const events = splitEvents(await readBroken(await say(`sandbox:cut=${count}`, stream)))
    expect(events[0]).toContain('"role":"assistant"')
    expect(contentEvents(events)).toBe(count)
    const [line] = await bill()
    expect(line).toMatchObject({ status: 200, units: { output: count } })
  })

  test('cut ends a plain answer in the middle of its body and bills all of it', async () => {
    const text = await readBroken(await say('sandbox:cut=1'))
    expect(text).toStartWith('{"id":"chatcmpl-')
    expect((await bill())[0]?.units.output).toBeGreaterThan(1)
  })

  test('eof ends the response cleanly without a finish reason or [DONE]', async () => {
    const events = await eventsOf(say('sandbox:eof=4', stream))
    expect(contentEvents(events)).toBe(4)
    expect(events.join('')).not.toMatch(/\[DONE\]|"finish_reason":"/)
    expect((await bill())[0]?.units.output).toBe(4)
    const plain = await say('sandbox:eof=4')
    expect(await plain.json().catch(() => 'no JSON')).toBe('no JSON')
  })

  test('midstream-error sends an error event as the last event', async () => {
    const events = await eventsOf(say('sandbox:midstream-error', stream))
    expect(contentEvents(events)).toBe(3)
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { type: 'server_error', code: null } })
    expect((await bill())[0]?.units.output).toBe(3)
  })

  test('malformed makes one event invalid JSON and leaves the others intact', async () => {
    const events = await eventsOf(say('sandbox:malformed', stream))
    const broken = events.slice(0, -1).filter((event) => !event.endsWith('}'))
    expect(broken.length).toBe(1)
    expect(events.at(-1)).toBe('[DONE]')
  })
})

describe('steering words for usage', () => {
  test('nousage leaves the usage out of the answer but bills it', async () => {
    expect(await completionOf(say('sandbox:nousage'))).not.toHaveProperty('usage')
    const events = await eventsOf(say('sandbox:nousage', stream))
    expect(events.join('')).not.toContain('prompt_tokens')
    expect((await bill()).map((line) => line.cost === '0')).toEqual([false, false])
  })

  test.each([
    [{}, '0'],
    [{ model: 'tiered' }, '0.000000007'],
  ])('zero reports and bills no tokens, and the price of a request: %j', async (more, cost) => {
    const { usage } = await completionOf(say('sandbox:zero', more))
    expect([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens]).toEqual([0, 0, 0])
    expect((await bill())[0]).toMatchObject({ status: 200, cost })
  })

  test.each([
    [777, 777],
    [-5, 0],
  ])('usage=%d is reported unchanged and billed as %d', async (told, billed) => {
    const { usage } = await completionOf(say(`sandbox:usage=${told}`))
    expect(usage.completion_tokens).toBe(told)
    const chunks = await chunksOf(say(`sandbox:usage=${told}`, stream))
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(told)
    expect((await bill()).map((line) => line.units.output)).toEqual([billed, billed])
  })

  test('inline-usage puts the usage into the chunk with the finish reason', async () => {
    const chunks = await chunksOf(say('sandbox:inline-usage', stream))
    expect(chunks.at(-1)).toMatchObject({
      choices: [{ finish_reason: 'stop' }],
      usage: { total_tokens: expect.any(Number) },
    })
  })
})

describe('steering words for the answer', () => {
  test.each([0, 1, 100, 1_000])('tokens=%d answers with that many tokens', async (tokens) => {
    const { choices, usage } = await completionOf(say(`sandbox:tokens=${tokens}`))
    expect([usage.completion_tokens, choices[0]?.finish_reason]).toEqual([tokens, 'stop'])
    const chunks = await chunksOf(say(`sandbox:tokens=${tokens}`, stream))
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(tokens)
  })

  test('tokens is limited by max_tokens', async () => {
    const { choices, usage } = await completionOf(say('sandbox:tokens=100', { max_tokens: 10 }))
    expect([usage.completion_tokens, choices[0]?.finish_reason]).toEqual([10, 'length'])
  })

  test('dated reports the dated name of the model but bills the plain one', async () => {
    expect((await completionOf(say('sandbox:dated'))).model).toBe('plain-2026-01-01')
    expect((await chunksOf(say('sandbox:dated', stream)))[0]?.model).toBe('plain-2026-01-01')
    expect((await bill())[0]?.model).toBe('plain')
  })

  test('unicode answers with well-formed non-Latin text, counted correctly', async () => {
    const chunks = await chunksOf(say('sandbox:unicode', stream))
    const text = contentOf(chunks)
    expect(text).toMatch(/[\u0900-\uffff]/)
    expect(text.isWellFormed()).toBe(true)
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(splitTokens(text).length)
  })

  test('big sends one chunk of that many bytes', async () => {
    const chunks = await chunksOf(say('sandbox:big=1000000', stream))
    expect(chunks[1]?.choices[0]?.delta.content?.length).toBe(1_000_000)
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(splitTokens(contentOf(chunks)).length)
  })
})

describe('steering words for the bytes of a stream', () => {
  test('drip sends the whole stream in writes of that many bytes', async () => {
    const content = 'sandbox:unicode sandbox:drip=7'
    const body = JSON.stringify({ model: 'plain', messages: [{ role: 'user', content }], ...stream })
    const head = [
      `POST ${new URL(sandbox.baseUrl('openai')).pathname}/chat/completions HTTP/1.1`,
      'Host: sandbox',
      'Authorization: Bearer vendor-key',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
    ]
    // Read from the raw socket, because an HTTP client may read several writes at once.
    const { text: answer } = await sendRaw(sandbox.url, lines(...head) + body, { wantsClose: true, quietMs: 10_000 })
    const { text, sizes } = unchunked(Buffer.from(answer.slice(answer.indexOf('\r\n\r\n') + 4), 'latin1'))
    expect(new Set(sizes.slice(0, -1))).toEqual(new Set([7]))
    const events = splitEvents(text)
    expect(sizes.length).toBeGreaterThan(events.length)
    expect(contentOf(events.slice(0, -1).map((event): Chunk => JSON.parse(event)))).not.toBe('')
    expect(events.at(-1)).toBe('[DONE]')
  })

  test('crlf uses CRLF line ends, comments, and no space after the field name', async () => {
    const text = await (await say('sandbox:crlf', stream)).text()
    expect(text).toStartWith(': ping\r\ndata:{')
    expect(text).toEndWith('data:[DONE]\r\n\r\n')
    expect(text.replaceAll('\r\n', '')).not.toContain('\n')
  })

  test('pace waits between two chunks', async () => {
    const start = performance.now()
    await chunksOf(say('sandbox:pace=10', { stream: true, max_tokens: 2 }))
    expect(performance.now() - start).toBeGreaterThanOrEqual(29)
  })
})
