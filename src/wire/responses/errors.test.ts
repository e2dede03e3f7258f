import { describe, expect, test } from 'bun:test'
import { badRequest, GatewayError } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import { responseError, writeError, writeStreamError } from './errors.ts'

const id = 'req_1' as RequestId
const paramOf = (error: GatewayError) =>
  (JSON.parse(writeError(error, id).body) as { error: { param: string | null } }).error.param

describe('the param of an error', () => {
  test.each([
    ['messages', 'input'],
    ['messages[3].content', 'input'],
    ['reasoning_effort', 'reasoning.effort'],
    ['max_tokens', 'max_output_tokens'],
    ['max_completion_tokens', 'max_output_tokens'],
    ['response_format.json_schema.schema', 'text.format'],
    ['verbosity', 'text.verbosity'],
    ['tools[1].function.name', 'tools[1].name'],
    ['tools[1].name', 'tools[1].name'],
    ['messages_of_another_kind', 'messages_of_another_kind'],
  ])('the field %s is reported as %s', (theirs, ours) => {
    expect(paramOf(badRequest('Bad.', theirs))).toBe(ours)
    const body = JSON.stringify({ error: { message: 'Bad.', type: 'invalid_request_error', param: theirs, code: 'x' } })
    const refusal = { protocol: 'openai', status: 422, body }
    const refused = new GatewayError('upstream-rejected', 'Bad.', { refusal })
    expect(paramOf(refused)).toBe(ours)
    expect(writeError(refused, id).status).toBe(422)
  })
})

test('an unsupported parameter is reported under the name that the client wrote', () => {
  expect(paramOf(badRequest('Bad.', 'max_tokens', 'unsupported_parameter'))).toBe('max_tokens')
})

test('an error without a field has a null param, and a refusal that is not JSON is unchanged', () => {
  expect(paramOf(new GatewayError('overloaded', 'Busy.', { retryAfterSeconds: 3 }))).toBeNull()
  const refusal = { protocol: 'openai', status: 400, body: '<html>' }
  expect(writeError(new GatewayError('upstream-rejected', 'Bad.', { refusal }), id).body).toBe('<html>')
})

test('an error in a stream without a known sequence is an error event with number 0', () => {
  const written = Buffer.from(writeStreamError(new GatewayError('overloaded', 'Busy.'))).toString()
  const [, name, data = ''] = /^event: (\w+)\ndata: (.*)\n\n$/.exec(written) ?? []
  expect(name).toBe('error')
  expect(JSON.parse(data)).toEqual({
    type: 'error',
    sequence_number: 0,
    code: 'overloaded',
    message: 'Busy.',
    param: null,
    error: { message: 'Busy.', type: 'overloaded_error', param: null, code: 'overloaded' },
  })
})

test.each([
  ['too-many', {}, 'rate_limit_exceeded'],
  ['upstream-rejected', { code: 'context_length_exceeded' }, 'context_length_exceeded'],
  ['upstream-rejected', {}, 'server_error'],
  ['overloaded', { code: 'busy' }, 'server_error'],
] as const)('a failed response has a code of the protocol: %s %j is %s', (kind, details, code) => {
  expect(responseError(new GatewayError(kind, 'So it is.', details))).toEqual({ code, message: 'So it is.' })
})
