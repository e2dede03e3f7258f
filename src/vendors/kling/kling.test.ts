import { describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { explain } from './explain.ts'
import { authorizationFor } from './token.ts'

describe('the signed token', () => {
  test('the token is signed with the secret half and valid for half an hour', () => {
    const [scheme, token = ''] = authorizationFor({ credential: 'AK:SK:x', now: 1_794_700_000_999 }).split(' ')
    const [head = '', body = '', signature] = token.split('.')
    expect(scheme).toBe('Bearer')
    expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual({ alg: 'HS256', typ: 'JWT' })
    expect(JSON.parse(Buffer.from(body, 'base64url').toString())).toEqual({
      iss: 'AK',
      exp: 1_794_701_800,
      nbf: 1_794_699_995,
    })
    expect(signature).toBe(createHmac('sha256', 'SK:x').update(`${head}.${body}`).digest('base64url'))
  })

  test('a token cannot be made without the time', () => {
    expect(() => authorizationFor({ credential: 'AK:SK' })).toThrow('needs the time')
  })
})

describe('a refusal', () => {
  const secrets = { baseUrl: 'https://api.vendor.example', credential: 'access-key-1:secret-key-1' }
  const told = (status: number, code: number, message = 'so it is') =>
    explain({ status, retryAfterSeconds: undefined, body: JSON.stringify({ code, message }) }, secrets)

  test.each([
    [401, 1002, 'upstream-failed', true],
    [429, 1102, 'upstream-failed', true], // An empty account, not a rate.
    [429, 1302, 'too-many', true],
    [400, 1201, 'upstream-rejected', false],
    [400, 1301, 'upstream-rejected', false],
    [404, 1203, 'upstream-failed', true],
    [200, 1201, 'upstream-rejected', false],
    [200, 5000, 'upstream-failed', true],
    [503, 5001, 'upstream-failed', true],
    [504, 5002, 'upstream-timeout', true],
  ] as const)('a %d with %d is %s', (status, code, kind, retryable) => {
    expect(told(status, code)).toMatchObject({ error: { kind }, retryable })
  })

  test('a refused key rests, and a refused request does not rest it', () => {
    expect(told(401, 1000).restCredentialSeconds).toBe(60)
    expect(told(429, 1101).restCredentialSeconds).toBe(60)
    expect(told(429, 1303).restCredentialSeconds).toBe(1)
    expect(told(400, 1200).restCredentialSeconds).toBeUndefined()
  })

  test.each([
    [429, [1000, 1001, 1002, 1003, 1004, 1100, 1101, 1102, 1304], 'upstream-failed', 60],
    [403, [1103], 'upstream-failed', undefined],
    [400, [1302, 1303], 'too-many', 1],
    [429, [1200, 1201, 1300, 1301], 'upstream-rejected', undefined],
    [500, [5002], 'upstream-timeout', undefined],
  ] as const)('the code decides over the status %d: %j', (status, codes, kind, rest) => {
    for (const code of codes) {
      const { error, restCredentialSeconds } = told(status, code)
      expect([code, error.kind, restCredentialSeconds]).toEqual([code, kind, rest])
    }
  })

  test.each([
    [[401, 402, 403], 'upstream-failed', 60],
    [[429], 'too-many', 1],
    [[400, 422], 'upstream-rejected', undefined],
    [[408, 504], 'upstream-timeout', undefined],
    [[404, 409, 500], 'upstream-failed', undefined],
  ] as const)('without a known code the status decides: %j', (statuses, kind, rest) => {
    for (const status of statuses) {
      const { error, restCredentialSeconds } = told(status, 7)
      expect([status, error.kind, restCredentialSeconds]).toEqual([status, kind, rest])
    }
  })

  test('a refusal keeps a 4xx status and is a 400 otherwise', () => {
    const shown = [200, 400, 499, 500].map((status) => told(status, 1201).error.details.refusal?.status)
    expect(shown).toEqual([400, 400, 499, 400])
  })

  test('a refusal contains neither half of the credential nor the address', () => {
    const { error } = told(400, 1201, 'access-key-1 and secret-key-1 at api.vendor.example')
    expect(error.message).toBe('[redacted] and [redacted] at [redacted]')
  })

  test('an HTML page is upstream-failed', () => {
    const { error } = explain({ status: 502, retryAfterSeconds: undefined, body: '<html>' }, secrets)
    expect(error.kind).toBe('upstream-failed')
  })
})
