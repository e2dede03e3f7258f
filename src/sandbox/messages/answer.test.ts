import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { splitTokens } from '../tokens.ts'
import { messageOf, openMessages } from './testing.ts'

const { sandbox, base, say, post, bill, clearBill } = openMessages()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const document = (source: object) => ({ type: 'document', source, title: 'Roads', citations: { enabled: true } })

describe('an answer', () => {
  test("an answer is a message in the vendor's form, counted exactly and billed", async () => {
    const response = await say('Say it', {}, { ref: 'attempt-1' })
    expect(response.headers.get('request-id')).toStartWith('req_')
    const message = await messageOf(response)
    expect(message).toMatchObject({
      id: expect.stringMatching(/^msg_01/),
      type: 'message',
      role: 'assistant',
      model: 'claude-test',
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      content: [{ type: 'text' }],
    })
    expect(message.content[0]).not.toHaveProperty('citations')
    const text = message.content[0]?.text ?? ''
    expect(text).toContain('Say it')
    const output = splitTokens(text).length
    // "Say it" is 2 tokens and the message's frame 3.
    const usage: unknown = message.usage
    expect(usage).toEqual({
      input_tokens: 5,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      output_tokens: output,
      output_tokens_details: { thinking_tokens: 0 },
      server_tool_use: null,
      service_tier: 'standard',
    })
    expect(await bill()).toMatchObject([
      { ref: 'attempt-1', model: 'claude-test', status: 200, units: { input: 5, output } },
    ])
  })

  test('the same request yields the same answer, and another text a different one', async () => {
    const [once, again, other] = await Promise.all([say('One'), say('One'), say('Two')].map(messageOf))
    expect(once).toEqual(again)
    expect(other?.content[0]?.text).not.toBe(once?.content[0]?.text)
  })

  test('the answer ends at max_tokens, before a stop sequence or at the end of the context', async () => {
    const whole = (await messageOf(say('Go on'))).content[0]?.text ?? ''
    expect(await messageOf(say('Go on', { max_tokens: 3 }))).toMatchObject({
      stop_reason: 'max_tokens',
      content: [{ text: splitTokens(whole).slice(0, 3).join('') }],
    })
    const stop = whole.slice(30, 34)
    expect(await messageOf(say('Go on', { stop_sequences: ['never there', stop] }))).toMatchObject({
      stop_reason: 'stop_sequence',
      stop_sequence: stop,
      content: [{ text: whole.slice(0, whole.indexOf(stop)) }],
    })
    const long = 'word '.repeat(99_990).trim()
    const full = await messageOf(say(long))
    expect([full.stop_reason, full.usage.output_tokens]).toEqual(['model_context_window_exceeded', 7])
  })

  test('refusal and pause end the answer with their own stop reasons', async () => {
    expect(await messageOf(say('sandbox:refusal'))).toMatchObject({
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', category: 'general_harms', explanation: expect.any(String) },
      usage: { output_tokens: 5 },
    })
    const paused = await messageOf(say('sandbox:pause'))
    expect(paused.stop_reason).toBe('pause_turn')
    const messages = [
      { role: 'user', content: 'sandbox:pause' },
      { role: 'assistant', content: paused.content },
    ]
    expect((await messageOf(say('', { messages }))).stop_reason).toBe('end_turn')
  })

  test("a schema yields an instance of it, also in the beta's output_format", async () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' }, people: { type: 'integer' } },
      required: ['city', 'people'],
      additionalProperties: false,
    }
    const format = { type: 'json_schema', schema }
    const head = { 'anthropic-beta': 'structured-outputs-2025-11-13' }
    for (const said of [
      say('Go on', { output_config: { format } }),
      say('Go on', { output_format: format }, { head }),
    ]) {
      const { content } = await messageOf(said)
      expect(JSON.parse(content[0]?.text ?? '')).toEqual({ city: expect.any(String), people: expect.any(Number) })
    }
  })

  test('the answer cites the documents that have citations enabled', async () => {
    const content = [
      document({ type: 'text', media_type: 'text/plain', data: 'All roads lead to Rome.' }),
      document({ type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }),
      { type: 'text', text: 'Where to?' },
    ]
    const message = await messageOf(say('', { messages: [{ role: 'user', content }] }))
    expect(message.content[0]?.citations).toMatchObject([
      { type: 'char_location', document_index: 0, cited_text: 'All roads lead to Rome.', document_title: 'Roads' },
      { type: 'page_location', document_index: 1, start_page_number: 1 },
    ])
  })

  test('a bearer token, the newer version and a query string are accepted', async () => {
    const bearer = { 'x-api-key': '', authorization: 'Bearer k', 'anthropic-version': '2026-10-21' }
    expect((await say('hi', {}, { head: bearer, path: '/v1/messages?beta=true' })).status).toBe(200)
  })
})

describe('counting tokens', () => {
  const body = { model: 'claude-test', messages: [{ role: 'user', content: 'Say it' }], tools: [] }

  test('a count is free', async () => {
    const counted = await post(body, { path: '/v1/messages/count_tokens?beta=true' })
    expect([counted.status, await counted.json()]).toEqual([200, { input_tokens: 5 }])
    expect(await bill()).toEqual([])
  })

  test('the count equals the billed input tokens', async () => {
    const more = {
      system: 'Be kind',
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }] },
      ],
    }
    const counted = await post({ ...body, ...more }, { path: '/v1/messages/count_tokens' })
    const { usage } = await messageOf(say('', more))
    expect(await counted.json()).toEqual({ input_tokens: usage.input_tokens })
  })
})

describe('the models', () => {
  const head = { headers: { 'x-api-key': 'k', 'anthropic-version': '2023-06-01' } }

  test('the models are listed in pages', async () => {
    const first = await fetch(`${base}/v1/models?limit=2`, head)
    expect(await first.json()).toMatchObject({
      data: [{ type: 'model', id: 'claude-test', display_name: 'claude-test' }, { id: 'claude-plain' }],
      has_more: true,
      first_id: 'claude-test',
      last_id: 'claude-plain',
    })
    const next = await fetch(`${base}/v1/models?limit=9&after_id=claude-plain`, head)
    const others = [{ id: 'claude-new' }, { id: 'claude-always' }, { id: 'claude-between' }]
    expect(await next.json()).toMatchObject({ data: others, has_more: false })
    const before = await fetch(`${base}/v1/models?limit=1&before_id=claude-new`, head)
    expect(await before.json()).toMatchObject({ data: [{ id: 'claude-plain' }], has_more: true })
    expect((await fetch(`${base}/v1/models?limit=1001`, head)).status).toBe(400)
  })

  test('a model is shown by its id, and an unknown one is a 404', async () => {
    const one = await fetch(`${base}/v1/models/claude-new`, head)
    expect(await one.json()).toMatchObject({ id: 'claude-new', max_tokens: 8_192 })
    const none = await fetch(`${base}/v1/models/none`, head)
    expect([none.status, await none.json()]).toMatchObject([404, { error: { type: 'not_found_error' } }])
  })
})

test('HEAD /api/hello answers with a 200', async () => {
  expect((await fetch(`${base}/api/hello`, { method: 'HEAD' })).status).toBe(200)
})
