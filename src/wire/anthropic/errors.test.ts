import { describe, expect, test } from 'bun:test'
import { GatewayError, type ErrorKind } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import { writeError, writeStreamError } from './errors.ts'

const requestId = 'req_1' as RequestId

const table: Readonly<Record<ErrorKind, readonly [status: number, type: string]>> = {
  'bad-request': [400, 'invalid_request_error'],
  unauthenticated: [401, 'authentication_error'],
  'no-funds': [402, 'billing_error'],
  'unknown-model': [404, 'not_found_error'],
  'wrong-capability': [400, 'invalid_request_error'],
  'not-found': [404, 'not_found_error'],
  'wrong-method': [405, 'invalid_request_error'],
  'wrong-type': [415, 'invalid_request_error'],
  conflict: [409, 'invalid_request_error'],
  'idempotency-mismatch': [422, 'invalid_request_error'],
  'too-many': [429, 'rate_limit_error'],
  'too-large': [413, 'request_too_large'],
  'too-many-headers': [431, 'invalid_request_error'],
  'upstream-rejected': [400, 'invalid_request_error'],
  'upstream-failed': [502, 'api_error'],
  'upstream-timeout': [504, 'api_error'],
  overloaded: [503, 'overloaded_error'],
  'client-gone': [499, 'invalid_request_error'],
  bug: [500, 'api_error'],
}
const rows = Object.entries(table) as [ErrorKind, (typeof table)[ErrorKind]][]

const header = (kind: ErrorKind) => writeError(new GatewayError(kind, 'why'), requestId).headers['x-should-retry']
const refused = (protocol: string, said = 'why') =>
  writeError(
    new GatewayError('upstream-rejected', said, { refusal: { protocol, status: 413, body: '{"theirs":1}' } }),
    requestId,
  )

const errorOf = (code: string) => {
  const { body } = writeError(new GatewayError('bad-request', 'why', { code }), requestId)
  return (JSON.parse(body) as { error: object }).error
}

describe('an error', () => {
  test.each(rows)('the kind %s is written with its status and type', (kind, [status, type]) => {
    const written = writeError(new GatewayError(kind, 'why'), requestId)
    expect(written.status).toBe(status)
    expect(written.headers).toMatchObject({ 'request-id': 'req_1', 'x-request-id': 'req_1' })
    expect(JSON.parse(written.body)).toEqual({ type: 'error', error: { type, message: 'why' }, request_id: 'req_1' })
  })

  test('x-should-retry is false only for errors that a retry cannot help', () => {
    expect([header('unauthenticated'), header('no-funds'), header('overloaded')]).toEqual(['false', 'false', undefined])
  })

  test('a refusal passes unchanged in this protocol and is rewritten from another', () => {
    expect(refused('anthropic')).toMatchObject({ status: 413, body: '{"theirs":1}' })
    expect(JSON.parse(refused('openai').body)).toMatchObject({
      error: { type: 'request_too_large', message: 'why' },
    })
    expect(refused('openai').status).toBe(413)
    // A conversation that is too long gets the error type that the vendor uses for it.
    const long = 'prompt is too long: 9 tokens > 8 maximum'
    expect(JSON.parse(refused('openai', long).body)).toMatchObject({
      error: { type: 'invalid_request_error', message: long },
    })
  })

  test('a refusal from another protocol names the fields of this one', () => {
    const said =
      "Invalid 'tools[12].function.name': too long; see tools[0].function.parameters and messages[1].content."
    const messageOf = (protocol: string) => {
      const refusal = { protocol, status: 400, body: '{}' }
      const { body } = writeError(new GatewayError('upstream-rejected', said, { refusal }), requestId)
      return (JSON.parse(body) as { error: { message: string } }).error.message
    }
    expect(messageOf('openai')).toBe(
      "Invalid 'tools[12].name': too long; see tools[0].input_schema and messages[1].content.",
    )
    expect(messageOf('none')).toBe(said)
  })

  test('only a code that official clients act upon is written into the details', () => {
    const plain = { type: 'invalid_request_error', message: 'why' }
    expect(errorOf('invalid_type')).toEqual(plain)
    expect(errorOf('thread_unsupported_request')).toEqual({
      ...plain,
      details: { error_code: 'thread_unsupported_request' },
    })
  })

  test('an error in a stream is written as an error event', () => {
    const text = Buffer.from(writeStreamError(new GatewayError('overloaded', 'why'))).toString()
    expect(text).toBe('event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"why"}}\n\n')
  })
})
