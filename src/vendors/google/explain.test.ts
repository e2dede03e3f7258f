import { describe, expect, test } from 'bun:test'
import { explain } from './explain.ts'

const secrets = { baseUrl: 'https://generativelanguage.googleapis.com', credential: 'AIzaSy0123456789abcdef' }
const told = (status: number, body: unknown, retryAfterSeconds?: number) =>
  explain({ status, retryAfterSeconds, body: typeof body === 'string' ? body : JSON.stringify(body) }, secrets)

const error = (status: string, message: string, ...details: readonly object[]) => ({
  error: { code: 0, message, status, details },
})
const info = (reason: string) => ({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason })
const delay = (retryDelay: string) => ({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay })

describe('errors that the operator must fix', () => {
  test.each([
    [400, error('INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', info('API_KEY_INVALID'))],
    [400, error('INVALID_ARGUMENT', 'API key expired. Please renew the API key.')],
    [400, error('INVALID_ARGUMENT', 'API Key not found. Please pass a valid API key.')],
    [400, error('INVALID_ARGUMENT', 'x', info('API_KEY_EXPIRED'))],
    [400, [error('INVALID_ARGUMENT', 'x', info('API_KEY_INVALID'))]],
    [400, error('FAILED_PRECONDITION', 'User location is not supported for the API use.')],
    [400, error('FAILED_PRECONDITION', 'Please enable billing on your project.')],
    [400, error('FAILED_PRECONDITION', 'The free tier is not available in your country.')],
    [401, error('UNAUTHENTICATED', 'Request had invalid authentication credentials.')],
    [403, error('PERMISSION_DENIED', 'x', info('BILLING_DISABLED'))],
    [403, error('PERMISSION_DENIED', 'The caller does not have permission', info('CONSUMER_INVALID'))],
    [403, error('PERMISSION_DENIED', 'Your API key was reported as leaked. Please use another API key.')],
    [403, '<html>'],
    [429, error('RESOURCE_EXHAUSTED', 'Your prepayment credits are depleted. Please go to AI Studio.')],
    [429, error('RESOURCE_EXHAUSTED', 'Your project has exceeded its monthly spending cap.')],
  ])('a %d rests the key for a minute: %j', (status, body) => {
    expect(told(status, body)).toMatchObject({
      error: { kind: 'upstream-failed' },
      retryable: true,
      restCredentialSeconds: 60,
    })
  })
})

describe('a rate limit', () => {
  const quota = 'You exceeded your current quota, please check your plan and billing details.'
  test.each([
    ['from the details', error('RESOURCE_EXHAUSTED', quota, info('X'), delay('34.4s')), 9, 34.4],
    ['from the header', error('RESOURCE_EXHAUSTED', quota, delay('soon')), 9, 9],
    ['a second without either', error('RESOURCE_EXHAUSTED', quota), undefined, 1],
    ['from an error in a list', [error('RESOURCE_EXHAUSTED', quota, delay('2s'))], undefined, 2],
    ['a second for a web page', '<html>', undefined, 1],
  ])('the wait of a 429 is read: %s', (_, body, header, seconds) => {
    const verdict = told(429, body, header)
    expect(verdict).toMatchObject({ error: { kind: 'too-many' }, retryable: true, restCredentialSeconds: seconds })
    expect(verdict.error.details.retryAfterSeconds).toBe(seconds)
  })
})

test.each([400, 413, 422])('a %d about the request keeps its status and message', (status) => {
  const body = error('INVALID_ARGUMENT', '* GenerateContentRequest.contents: contents is not specified\n')
  const { error: shown, retryable, restCredentialSeconds } = told(status, body)
  expect([shown.kind, retryable, restCredentialSeconds]).toEqual(['upstream-rejected', false, undefined])
  expect(shown.message).toBe('* GenerateContentRequest.contents: contents is not specified')
  expect(shown.details.refusal).toEqual({ protocol: 'gemini', status, body: JSON.stringify(body) })
})

test.each(['API key not valid', 'API_KEY_INVALID', 'billing', 'free tier'])(
  'words about keys and accounts that are quoted from the request do not rest the key: %s',
  (words) => {
    const verdict = told(400, error('INVALID_ARGUMENT', `Unsupported MIME type: ${words}`))
    expect(verdict).toMatchObject({ error: { kind: 'upstream-rejected' }, retryable: false })
    expect(verdict.restCredentialSeconds).toBeUndefined()
  },
)

test.each([
  [400, error('INVALID_ARGUMENT', 'Imagen API is only accessible to billed users at this time.')],
  [403, error('PERMISSION_DENIED', 'The caller does not have permission')],
  [403, error('PERMISSION_DENIED', 'The caller does not have permission', info('PUBLIC_ERROR_MODEL_ACCESS_DENIED'))],
])('a model that is closed to the account is upstream-failed and does not rest the key: %d', (status, body) => {
  const verdict = told(status, body)
  expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
  expect(verdict.restCredentialSeconds).toBeUndefined()
})

test('a refusal for a file that is not ready is not retried', () => {
  expect(told(400, error('FAILED_PRECONDITION', 'The File abc is not in an ACTIVE state.')).retryable).toBe(false)
})

test.each([
  [404, 'upstream-failed'],
  [409, 'upstream-failed'],
  [499, 'upstream-failed'],
  [500, 'upstream-failed'],
  [503, 'upstream-failed'],
  [504, 'upstream-timeout'],
] as const)('a %d is retried elsewhere and does not rest the key', (status, kind) => {
  const verdict = told(status, error('X', 'words'))
  expect(verdict).toMatchObject({ error: { kind }, retryable: true })
  expect(verdict.restCredentialSeconds).toBeUndefined()
  expect(verdict.error.message).not.toContain('words')
})

test.each(['<html>bad request</html>', '', 'null', '[]', '{}', '{"error":"no"}'])(
  'a 400 without a message is upstream-failed: %j',
  (body) => {
    expect(told(400, body)).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
  },
)

test('a 413 is too-large, even as an HTML page', () => {
  expect(told(413, '<html>')).toMatchObject({ error: { kind: 'too-large' }, retryable: false })
})

test("no refusal contains our key or the vendor's address", () => {
  const { credential, baseUrl } = secrets
  const shown = told(400, error('INVALID_ARGUMENT', `the key ${credential} at ${baseUrl} is odd`)).error
  const said = JSON.stringify({ message: shown.message, refusal: shown.details.refusal })
  expect(said).not.toContain(credential)
  expect(said).not.toContain('googleapis')
})
