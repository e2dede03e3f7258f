import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { anthropicChat, anthropicCount } from '../../wire/anthropic/chat.ts'
import { openaiChat } from '../../wire/openai/chat.ts'
import { plainContext } from '../testing.ts'
import { anthropic } from './anthropic.ts'
import { explain } from './explain.ts'

const traits = { ...plainModel, id: 'ours', choicesMax: 1 }
const context = { ...plainContext, efforts: ['low', 'xhigh'] }
const messages = [{ role: 'user', content: 'Hi' }]
const asked = (body: JsonObject, headers: Record<string, string> = {}) => ({
  body,
  files: [],
  bodyBytes: 100,
  header: (name: string) => headers[name] ?? null,
})
const headers = { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'x-2026-01-01', 'x-api-key': 'the client’s' }
const { chat } = anthropic

const kept = { type: 'file', file_id: 'file_1' }
const user = (...content: readonly JsonObject[]) => [{ role: 'user', content }]

describe('a client of the same protocol', () => {
  test('the request is passed on with its version and betas, under our key', () => {
    const body = { model: 'ours', max_tokens: 0, messages, metadata: { user_id: 'ann' } }
    const call = chat?.pass?.(
      anthropicChat.readAsk(asked(body, headers), () => traits),
      context,
    )
    expect(call?.headers).toEqual({
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'x-2026-01-01',
      'x-api-key': 'vk-0123456789abcdef',
      'content-type': 'application/json',
      'x-client-request-id': 'att_1',
    })
    expect(JSON.parse(call?.body as string)).toEqual({ ...body, model: 'theirs', metadata: { user_id: 'mine/ann' } })
  })

  test.each([
    ['container', { container: 'container_1' }],
    ['messages[0].content[0].file_id', { messages: user({ type: 'container_upload', file_id: 'f' }) }],
    ['messages[0].content[0].source.file_id', { messages: user({ type: 'image', source: kept }) }],
    [
      'messages[0].content[0].content[0].source.file_id',
      { messages: user({ type: 'tool_result', tool_use_id: 't', content: [{ type: 'document', source: kept }] }) },
    ],
    [
      'messages[0].content[0].source.content[0].source.file_id',
      {
        messages: user({
          type: 'document',
          source: { type: 'content', content: [{ type: 'image', source: kept }] },
        }),
      },
    ],
  ])('a reference to what the vendor stores for the operator is refused: %s', (param, fields) => {
    const body = { model: 'ours', max_tokens: 5, messages, ...fields }
    const ask = anthropicChat.readAsk(asked(body), () => traits)
    const refused = expect.objectContaining({ kind: 'bad-request', details: { param, code: 'unsupported_value' } })
    expect(() => chat?.pass?.(ask, context)).toThrow(refused)
    expect(() => chat?.count?.call(ask, context)).toThrow(refused)
  })

  test('a null container is passed on', () => {
    const body = { model: 'ours', max_tokens: 5, messages, container: null }
    const ask = anthropicChat.readAsk(asked(body), () => traits)
    expect(JSON.parse(chat?.pass?.(ask, context)?.body as string)).toMatchObject({ container: null })
  })

  test('the prompt is counted by the vendor', () => {
    const call = chat?.count?.call(
      anthropicCount.readAsk(asked({ model: 'ours', messages }), () => traits),
      context,
    )
    expect(call?.url).toBe('https://vendor.example/v1/messages/count_tokens')
    expect(JSON.parse(call?.body as string)).toEqual({ model: 'theirs', messages })
    expect(chat?.count?.read(Buffer.from('{"input_tokens":12}'))).toBe(12)
    expect(() => chat?.count?.read(Buffer.from('{}'))).toThrow('no count')
  })
})

test('thinking that a client of another protocol sends back is released from its conversation by a beta', () => {
  const thought = { type: 'thinking', thinking: 'Hm', signature: 'Eq' }
  const replied = { role: 'assistant', content: 'Hello.', thinking_blocks: [thought] }
  const ask = openaiChat.readAsk(asked({ model: 'ours', messages: [...messages, replied, ...messages] }), () => traits)
  const call = chat?.translate(ask, openaiChat.readConversation(ask), { ...context, rules: ['binds-thinking'] })
  expect(call?.headers['anthropic-beta']).toBe('thinking-binding-controls-2026-08-01')
  expect(JSON.parse(call?.body as string).thinking.block_binding).toEqual({ prefix_mismatch_behavior: 'drop_block' })
})

test('a request from another protocol is sent in the version that accepts its fields', () => {
  const ask = openaiChat.readAsk(
    asked({ model: 'ours', messages, user: 'ann', reasoning_effort: 'xhigh' }),
    () => traits,
  )
  const call = chat?.translate(ask, openaiChat.readConversation(ask), context)
  expect(call?.headers['anthropic-version']).toBe('2023-06-01')
  expect(call?.headers).not.toHaveProperty('anthropic-beta')
  expect(JSON.parse(call?.body as string)).toEqual({
    model: 'theirs',
    max_tokens: 1_000,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    thinking: { type: 'adaptive', display: 'summarized' },
    output_config: { effort: 'xhigh' },
    metadata: { user_id: 'mine/ann' },
  })
})

const told = (status: number, error: object, retryAfterSeconds?: number) =>
  explain({ status, retryAfterSeconds, body: JSON.stringify({ type: 'error', error }) }, context)

describe('a refusal', () => {
  test("only a refusal in the vendor's own form is passed on in its protocol", () => {
    const own = told(400, { type: 'invalid_request_error', message: 'no' })
    expect(own.error.details.refusal).toMatchObject({ protocol: 'anthropic', status: 400 })
    // A refusal by a proxy, in the form of the common protocol.
    const body = '{"error":{"message":"no","type":"invalid_request_error","param":null,"code":"x"}}'
    const { error } = explain({ status: 400, retryAfterSeconds: undefined, body }, context)
    expect(error).toMatchObject({ message: 'no', details: { refusal: { protocol: 'none', status: 400 } } })
  })

  test("an overload keeps the vendor's wait, and a rate limit rests the key", () => {
    const busy = told(529, { type: 'overloaded_error', message: 'Overloaded' }, 7)
    expect(busy).toMatchObject({ error: { kind: 'overloaded', details: { retryAfterSeconds: 7 } }, retryable: true })
    expect(told(429, { message: 'slow' })).toMatchObject({ error: { kind: 'too-many' }, restCredentialSeconds: 1 })
  })

  test('an empty balance rests the key and is not mentioned to the client', () => {
    const { error, restCredentialSeconds } = told(400, { message: 'Your credit balance is too low to access' })
    expect([error.kind, restCredentialSeconds]).toEqual(['upstream-failed', 60])
    expect(error.message).not.toContain('credit')
  })

  test.each([
    [400, 'This organization has been disabled.'],
    [400, 'You have reached your specified API usage limits. To continue, please adjust your limits.'],
    [400, 'You have reached your specified workspace API usage limits. You will regain access on 2026-06-01.'],
    // Zhipu's endpoint in this protocol
    [429, '[1113][Insufficient balance or no resource package. Please recharge.][20260922]'],
    [429, 'Insufficient balance or no resource package. Please recharge.'],
  ])('an account that is closed or empty rests the key: %d %s', (status, message) => {
    const { error, restCredentialSeconds } = told(status, { type: 'invalid_request_error', message })
    expect([error.kind, restCredentialSeconds]).toEqual(['upstream-failed', 60])
  })

  test.each(['Your credit balance is too low', 'You have reached your specified API usage limits'])(
    'billing words that are quoted from the request do not rest the key: %s',
    (words) => {
      const message = `messages.0.content.0: Input tag '${words}' found using 'type' does not match any of the expected tags`
      const { error, restCredentialSeconds } = told(400, { type: 'invalid_request_error', message })
      expect([error.kind, error.message, restCredentialSeconds]).toEqual(['upstream-rejected', message, undefined])
    },
  )

  test.each([
    [400, 'billing_error', 'upstream-failed', 60],
    [401, 'authentication_error', 'upstream-failed', 60],
    [402, 'x', 'upstream-failed', 60],
    [403, 'permission_error', 'upstream-failed', 60],
    [404, 'not_found_error', 'upstream-failed', undefined],
    [400, 'overloaded_error', 'overloaded', undefined],
    [529, 'x', 'overloaded', undefined],
    [408, 'x', 'upstream-timeout', undefined],
    [504, 'timeout_error', 'upstream-timeout', undefined],
    [500, 'api_error', 'upstream-failed', undefined],
    [400, 'invalid_request_error', 'upstream-rejected', undefined],
  ] as const)('a %d with %s is %s', (status, type, kind, rest) => {
    const { error, retryable, restCredentialSeconds } = told(status, { type, message: 'so it is' })
    expect([error.kind, restCredentialSeconds]).toEqual([kind, rest])
    expect(retryable).toBe(kind !== 'upstream-rejected')
  })

  test.each(['<html>bad gateway</html>', '', 'null', '[]', '{}'])(
    'a refusal without a message is upstream-failed: %j',
    (body) => {
      expect(explain({ status: 400, retryAfterSeconds: undefined, body }, context)).toMatchObject({
        error: { kind: 'upstream-failed' },
        retryable: true,
      })
    },
  )

  test('a 413 is too-large, even as an HTML page', () => {
    const verdict = explain({ status: 413, retryAfterSeconds: undefined, body: '<html>' }, context)
    expect(verdict).toMatchObject({ error: { kind: 'too-large' }, retryable: false })
  })
})
