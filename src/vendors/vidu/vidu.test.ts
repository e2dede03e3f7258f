import { describe, expect, test } from 'bun:test'
import { explain } from './explain.ts'

describe('a refusal', () => {
  const secrets = { baseUrl: 'https://api.vendor.example', credential: 'vda_0123456789' }
  const told = (status: number, body: object) =>
    explain({ status, retryAfterSeconds: undefined, body: JSON.stringify(body) }, secrets)

  test.each([
    [400, 'FieldInvalid', 'upstream-rejected', false],
    [400, 'AuditSubmitIllegal', 'upstream-rejected', false],
    // An empty account, not a bad request.
    [400, 'CreditInsufficient', 'upstream-failed', true],
    [400, 'ModelUnavailable', 'upstream-failed', true],
    [400, 'SystemThrottling', 'too-many', true],
    [400, 'TooManyRequests', 'too-many', true],
    [400, 'OperationInProcess', 'too-many', true],
    // A refused prompt is no fault of the key.
    [403, 'TaskPromptPolicyViolation', 'upstream-rejected', false],
    [403, 'AuditSubmitIllegal', 'upstream-rejected', false],
    [400, 'InternalServiceFailure', 'upstream-failed', true],
    [401, 'Unauthorized', 'upstream-failed', true],
    [403, 'Forbidden', 'upstream-failed', true],
    [429, 'QuotaExceeded', 'too-many', true],
    [400, 'SomethingNew', 'upstream-rejected', false],
    [500, 'FieldInvalid', 'upstream-failed', true],
  ] as const)('a %d with %s is explained', (status, reason, kind, retryable) => {
    for (const body of [{ reason, message: 'so it is' }, { err_code: reason }]) {
      expect(told(status, body)).toMatchObject({ error: { kind }, retryable })
    }
  })

  test("the vendor's message is passed on without key and address, or its code if it has none", () => {
    const message = 'bad, says vda_0123456789 at api.vendor.example'
    expect(told(400, { reason: 'FieldInvalid', message }).error.message).toBe('bad, says [redacted] at [redacted]')
    expect(told(400, { err_code: 'FieldInvalid' }).error.message).toBe('FieldInvalid')
  })

  test('a key that is refused or out of credits rests, and no other', () => {
    expect(told(401, {}).restCredentialSeconds).toBe(60)
    expect(told(400, { reason: 'CreditInsufficient' }).restCredentialSeconds).toBe(60)
    expect(told(400, { reason: 'FieldInvalid' }).restCredentialSeconds).toBeUndefined()
  })

  test('an HTML page is upstream-failed', () => {
    const { error } = explain({ status: 502, retryAfterSeconds: undefined, body: '<html>' }, secrets)
    expect(error.kind).toBe('upstream-failed')
  })
})
