import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { errorOf, until } from '../testing.ts'
import { type Event, eventsOf, messageOf, openMessages, readEvents, textOf } from './testing.ts'

const { sandbox, say, bill, clearBill } = openMessages()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const stream = { stream: true }
const typesOf = (events: readonly Event[]): string[] => events.map(({ type }) => type)
const contentEvents = (events: readonly Event[]): number =>
  events.filter((event) => event.delta?.type === 'text_delta').length

describe('a stream', () => {
  test('a stream has the text and usage of the plain answer, event by event', async () => {
    const plain = await messageOf(say('Go on'))
    const response = await say('Go on', stream)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const events = await eventsOf(response)
    expect(textOf(events)).toBe(plain.content[0]?.text ?? '')
    const types = typesOf(events)
    expect(types.slice(0, 4)).toEqual(['message_start', 'content_block_start', 'ping', 'content_block_delta'])
    expect(types.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
    const start = events[0]?.message
    expect([start?.id, start?.content.length, start?.role]).toEqual([plain.id, 0, 'assistant'])
    expect([start?.usage.input_tokens, start?.usage.output_tokens]).toEqual([5, 1])
    const end = events.at(-2)
    expect([end?.delta.stop_reason, end?.usage.input_tokens, end?.usage.output_tokens]).toEqual([
      'end_turn',
      5,
      plain.usage.output_tokens,
    ])
    expect((await bill()).map(({ units }) => units)).toEqual(Array(2).fill(expect.objectContaining({ input: 5 })))
  })

  test('a stream that the client aborts is billed with status 499, for its prompt and what was sent', async () => {
    const hangUp = new AbortController()
    const response = await say('sandbox:endless', stream, { signal: hangUp.signal })
    let words = 0
    for await (const bytes of response.body ?? []) {
      words += Buffer.from(bytes).toString().split('"text_delta"').length - 1
      if (words > 2) break
    }
    hangUp.abort()
    const line = await until(async () => (await bill())[0])
    expect(line.status).toBe(499)
    expect(line.units['input']).toBeGreaterThan(0)
    expect(line.units['output']).toBeGreaterThanOrEqual(words)
  })
})

describe('steering words that make a request fail', () => {
  test.each([
    ['overloaded_error', 529, 'overloaded_error'],
    ['rate_limit_error', 429, 'rate_limit_error'],
    ['billing_error', 402, 'billing_error'],
    ['credit_balance_too_low', 400, 'invalid_request_error'],
    ['content_filter', 400, 'invalid_request_error'],
    ['made_up', 400, 'invalid_request_error'],
  ])('fail=%s answers with the error of that name, which costs nothing', async (code, status, type) => {
    const response = await say(`sandbox:fail=${code}`, stream)
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: { type, message: expect.any(String) },
      request_id: response.headers.get('request-id') ?? '',
    })
    expect(response.status).toBe(status)
    expect((await bill()).map((line) => [line.status, line.cost])).toEqual([[status, '0']])
  })

  test.each([
    [401, 'authentication_error', 'false'],
    [403, 'permission_error', 'false'],
    [413, 'request_too_large', 'false'],
    [429, 'rate_limit_error', 'true'],
    [500, 'api_error', 'true'],
    [503, 'api_error', 'true'],
    [504, 'timeout_error', 'true'],
    [529, 'overloaded_error', 'true'],
  ])('status=%d answers with that status, its error type and its retry headers', async (status, type, again) => {
    const response = await say(`sandbox:status=${status}`)
    expect(response.headers.get('x-should-retry')).toBe(again)
    expect(response.headers.get('retry-after')).toBe(status === 429 ? '1' : null)
    expect(await errorOf(response)).toMatchObject({ status, type })
  })

  test('html, error200, leak and status=502 cost nothing, and headers adds unusual headers', async () => {
    expect((await say('sandbox:status=502')).headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(await (await say('sandbox:html')).text()).toContain('<html>')
    expect(await errorOf(say('sandbox:error200'))).toMatchObject({ status: 200, type: 'api_error' })
    const leak = await errorOf(say('sandbox:leak', {}, { head: { 'x-api-key': 'very-secret' } }))
    expect(leak).toMatchObject({ status: 401, message: expect.stringContaining('very-secret') })
    expect((await say('sandbox:headers')).headers.get('x-odd-50')).toBe('odd value 50')
    expect((await bill()).map(({ cost }) => cost === '0')).toEqual([true, true, true, true, false])
  })

  test('charge-then-fail fails the request and bills the answer', async () => {
    expect(await errorOf(say('hi sandbox:charge-then-fail=500', stream))).toMatchObject({ status: 500 })
    const [line, ...others] = await bill()
    expect([line?.status, line?.cost === '0', others]).toEqual([500, false, []])
  })
})

describe('steering words that break a stream', () => {
  test('eof ends the stream cleanly without message_delta', async () => {
    const events = await eventsOf(say('sandbox:eof=4', stream))
    expect([contentEvents(events), typesOf(events).includes('message_delta')]).toEqual([4, false])
    expect((await bill())[0]?.units.output).toBe(4)
  })

  test('cut closes the connection in the middle of the stream', async () => {
    const response = await say('sandbox:cut=2', stream)
    const end = await response.text().then(
      () => 'ended',
      () => 'died',
    )
    expect(end).toBe('died')
    expect((await bill())[0]?.units.output).toBe(2)
  })

  test('midstream-error sends an error as the last event', async () => {
    const events = await eventsOf(say('sandbox:midstream-error', stream))
    expect(contentEvents(events)).toBe(3)
    expect(events.at(-1)).toEqual({
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded' },
    } as object as Event)
  })

  test('malformed makes one event invalid JSON', async () => {
    const text = await (await say('sandbox:malformed', stream)).text()
    const broken = text.split('\n\n').filter((event) => event !== '' && !event.endsWith('}'))
    expect(broken).toEqual([expect.stringMatching(/^event: content_block_delta\ndata: .*"unfini$/)])
  })
})

describe('steering words for usage, events and text', () => {
  test('nousage leaves the usage out of every event but bills it', async () => {
    const text = await (await say('sandbox:nousage', stream)).text()
    expect(text).not.toContain('usage')
    expect(await messageOf(say('sandbox:nousage'))).not.toHaveProperty('usage')
    expect((await bill()).map(({ cost }) => cost === '0')).toEqual([false, false])
  })

  test('start-usage reports usage in message_start only', async () => {
    const events = await eventsOf(say('sandbox:start-usage', stream))
    expect(events[0]?.message.usage.input_tokens).toBeGreaterThan(0)
    expect(events.at(-2)).not.toHaveProperty('usage')
  })

  test('double-start sends message_start twice', async () => {
    const events = await eventsOf(say('sandbox:double-start', stream))
    expect(typesOf(events).slice(0, 3)).toEqual(['message_start', 'message_start', 'content_block_start'])
    expect(events[0]).toEqual(events[1] as Event)
  })

  test('no-events omits the event names, and crlf changes the line ends', async () => {
    const bare = await (await say('sandbox:no-events', stream)).text()
    expect(bare).toStartWith('data: {"type":"message_start"')
    expect(bare).not.toContain('event:')
    const odd = await (await say('sandbox:crlf', stream)).text()
    expect(odd).toStartWith(': ping\r\nevent:message_start\r\ndata:{')
    expect(odd.replaceAll('\r\n', '')).not.toContain('\n')
  })

  test('usage, zero, tokens, dated, unicode and big change the usage, the model and the text', async () => {
    const told = await eventsOf(say('sandbox:usage=777', stream))
    expect(told.at(-2)?.usage.output_tokens).toBe(777)
    const { usage } = await messageOf(say('sandbox:zero'))
    expect([usage.input_tokens, usage.output_tokens]).toEqual([0, 0])
    expect((await bill()).map(({ units }) => units.output)).toEqual([777, 0])
    expect((await messageOf(say('sandbox:tokens=100'))).usage.output_tokens).toBe(100)
    expect((await messageOf(say('sandbox:tokens=0'))).content).toEqual([])
    expect((await messageOf(say('sandbox:dated'))).model).toBe('claude-test-20260101')
    expect(textOf(await eventsOf(say('sandbox:unicode', stream)))).toMatch(/[\u0900-\uffff]/)
    const big = await eventsOf(say('sandbox:big=100000', stream))
    expect(big.find((event) => event.delta?.type === 'text_delta')?.delta.text.length).toBe(100_000)
  })

  test('drip leaves the stream complete', async () => {
    const response = await say('sandbox:drip=7', stream)
    const parts: Uint8Array[] = []
    for await (const part of response.body ?? []) parts.push(part)
    expect(typesOf(readEvents(Buffer.concat(parts).toString())).at(-1)).toBe('message_stop')
  })
})
