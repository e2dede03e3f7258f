import { describe, expect, test } from 'bun:test'
import { GatewayError, type ErrorKind } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import { writeError, writeStreamError } from './errors.ts'

const id = 'req_1' as RequestId

/** The specified status, type and code of each kind of error. */
const table: Readonly<Record<ErrorKind, readonly [status: number, type: string, code: string]>> = {
  'bad-request': [400, 'invalid_request_error', 'invalid_value'],
  unauthenticated: [401, 'invalid_request_error', 'invalid_api_key'],
  'no-funds': [402, 'insufficient_balance', 'insufficient_balance'],
  'unknown-model': [404, 'invalid_request_error', 'model_not_found'],
  'wrong-capability': [400, 'invalid_request_error', 'endpoint_model_mismatch'],
  'not-found': [404, 'invalid_request_error', 'unknown_url'],
  'wrong-method': [405, 'invalid_request_error', 'method_not_supported'],
  'wrong-type': [415, 'invalid_request_error', 'unsupported_content_type'],
  conflict: [409, 'conflict_error', 'idempotency_in_progress'],
  'idempotency-mismatch': [422, 'conflict_error', 'idempotency_mismatch'],
  'too-many': [429, 'rate_limit_error', 'rate_limit_exceeded'],
  'too-large': [413, 'invalid_request_error', 'request_too_large'],
  'too-many-headers': [431, 'invalid_request_error', 'too_many_headers'],
  'upstream-rejected': [400, 'invalid_request_error', 'invalid_value'],
  'upstream-failed': [502, 'upstream_error', 'upstream_failed'],
  'upstream-timeout': [504, 'upstream_error', 'upstream_timeout'],
  overloaded: [503, 'overloaded_error', 'overloaded'],
  'client-gone': [499, 'invalid_request_error', 'client_gone'],
  bug: [500, 'server_error', 'internal_error'],
}
const rows = Object.entries(table) as [ErrorKind, (typeof table)[ErrorKind]][]

describe('every kind of error', () => {
  test.each(rows)('%s is written with its specified status, type and code', (kind, [status, type, code]) => {
    const written = writeError(new GatewayError(kind, 'Words.'), id)
    expect(written.status).toBe(status)
    expect(JSON.parse(written.body)).toEqual({ error: { message: 'Words.', type, param: null, code } })
    expect(written.headers).toMatchObject({ 'content-type': 'application/json', 'x-request-id': id })
  })

  test.each(rows)('%s in a stream is written as one event with all four keys', (kind, [, type, code]) => {
    const text = Buffer.from(writeStreamError(new GatewayError(kind, 'Words\nof two lines.'))).toString()
    expect(text).toMatch(/^data: .*\n\n$/)
    expect(text.trimEnd().split('\n')).toHaveLength(1)
    expect(JSON.parse(text.slice(6))).toEqual({
      error: { message: 'Words\nof two lines.', type, param: null, code },
    })
  })
})

const headersOf = (kind: ErrorKind, details = {}) => writeError(new GatewayError(kind, 'x', details), id).headers

describe('the headers of an error', () => {
  test('x-should-retry is false only for errors that a retry cannot help', () => {
    for (const kind of ['unauthenticated', 'no-funds', 'idempotency-mismatch'] as const) {
      expect(headersOf(kind)['x-should-retry']).toBe('false')
    }
    expect(headersOf('overloaded')).not.toHaveProperty('x-should-retry')
    expect(headersOf('overloaded', { shouldRetry: false })['x-should-retry']).toBe('false')
  })

  test('retry-after is written in whole seconds, rounded up', () => {
    expect(headersOf('too-many', { retryAfterSeconds: 0.2 })['retry-after']).toBe('1')
    expect(headersOf('too-many', { retryAfterSeconds: 2.1 })['retry-after']).toBe('3')
    expect(headersOf('too-many')).not.toHaveProperty('retry-after')
  })

  test('www-authenticate names Bearer, and allow names the methods', () => {
    expect(headersOf('unauthenticated')['www-authenticate']).toStartWith('Bearer')
    expect(headersOf('wrong-method', { allow: 'GET, POST' })['allow']).toBe('GET, POST')
  })
})

test('the code and param of an error replace the defaults', () => {
  const error = new GatewayError('bad-request', 'x', { code: 'unsupported_value', param: 'n' })
  expect(JSON.parse(writeError(error, id).body)).toMatchObject({ error: { code: 'unsupported_value', param: 'n' } })
})

test('a refusal passes unchanged in this protocol and is rewritten from another', () => {
  const refusal = { protocol: 'openai', status: 422, body: '{"error":{"message":"theirs"},"odd":1}' }
  const written = writeError(new GatewayError('upstream-rejected', 'theirs', { refusal }), id)
  expect(written).toMatchObject({ status: 422, body: refusal.body })
  const foreign = { ...refusal, protocol: 'anthropic' }
  const translated = writeError(new GatewayError('upstream-rejected', 'theirs', { refusal: foreign }), id)
  expect(translated.status).toBe(422)
  expect(JSON.parse(translated.body)).toEqual({
    error: { message: 'theirs', type: 'invalid_request_error', param: null, code: 'invalid_value' },
  })
})

test.each([
  ['Request exceeds the maximum size', 'request_too_large'],
  ['prompt is too long: 9 tokens > 8 maximum', 'context_length_exceeded'],
])('a 413 from another protocol has the code for what is too large: %s', (said, code) => {
  const refusal = { protocol: 'anthropic', status: 413, body: '{}' }
  const { status, body } = writeError(new GatewayError('upstream-rejected', said, { refusal }), id)
  expect([status, JSON.parse(body)]).toMatchObject([413, { error: { type: 'invalid_request_error', code } }])
})
