import { describe, expect, test } from 'bun:test'
import { explain } from './explain.ts'

describe('a refusal', () => {
  const secrets = { baseUrl: 'https://api.vendor.example', credential: 'key_0123456789' }
  const told = (status: number, error: string) =>
    explain({ status, retryAfterSeconds: undefined, body: JSON.stringify({ error }) }, secrets)

  test.each([
    [400, 'promptImage: expected an HTTPS URL', 'upstream-rejected', false],
    // An empty account, not a bad request.
    [400, 'You do not have enough credits to run this task.', 'upstream-failed', true],
    [401, 'The API key is not valid.', 'upstream-failed', true],
    [404, 'not found', 'upstream-failed', true],
    [429, 'too many', 'too-many', true],
    [500, 'unexpected', 'upstream-failed', true],
    [504, 'overloaded', 'upstream-timeout', true],
  ] as const)('a %d is explained: %s', (status, message, kind, retryable) => {
    expect(told(status, message)).toMatchObject({ error: { kind }, retryable })
  })

  test("the vendor's message is passed on without our key", () => {
    expect(told(400, 'bad, says key_0123456789').error.message).toBe('bad, says [redacted]')
  })

  test('a key that is refused or out of credits rests, and no other', () => {
    expect(told(401, 'no').restCredentialSeconds).toBe(60)
    expect(told(400, 'Not enough credits.').restCredentialSeconds).toBe(60)
    expect(told(400, 'bad').restCredentialSeconds).toBeUndefined()
  })

  test('an HTML page is upstream-failed', () => {
    const { error } = explain({ status: 502, retryAfterSeconds: undefined, body: '<html>' }, secrets)
    expect(error.kind).toBe('upstream-failed')
  })
})
