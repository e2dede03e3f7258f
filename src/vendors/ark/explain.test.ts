import { expect, test } from 'bun:test'
import { GatewayError } from '../../base/errors.ts'
import { vendors } from '../index.ts'
import { answer, videoOf } from '../testing.ts'

const secrets = { baseUrl: 'https://ark.vendor.example', credential: 'vk-0123456789abcdef' }
const told = (status: number, code: string, type: string) =>
  vendors.get('ark')?.explain(
    {
      status,
      retryAfterSeconds: undefined,
      body: JSON.stringify({ error: { code, message: 'no', param: '', type } }),
    },
    secrets,
  )

test('QuotaExceeded is too-many and rests the key for a second only', () => {
  expect(told(429, 'QuotaExceeded', 'TooManyRequests')).toMatchObject({
    error: { kind: 'too-many', details: { retryAfterSeconds: 1 } },
    retryable: true,
    restCredentialSeconds: 1,
  })
})

test.each(['AccountOverdueError', 'OperationDenied.ServiceOverdue'])(
  '%s is upstream-failed and rests the key for a minute',
  (code) => {
    const verdict = { error: { kind: 'upstream-failed' }, retryable: true, restCredentialSeconds: 60 }
    expect(told(403, code, 'Forbidden')).toMatchObject(verdict)
  },
)

test.each([
  [403, 'OperationDenied.ServiceNotOpen', 'Forbidden'],
  [403, 'OperationDenied.InvalidState', 'Forbidden'],
  [404, 'InvalidEndpointOrModel.ModelIDAccessDisabled', 'NotFound'],
  [400, 'InvalidEndpoint.ClosedEndpoint', 'BadRequest'],
  // The operator has limited the use of this model, so waiting does not help.
  [429, 'SetLimitExceeded', 'TooManyRequests'],
])('an unavailable model is upstream-failed and does not rest the key: %d %s', (status, code, type) => {
  const verdict = told(status, code, type)
  expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
  expect(verdict?.restCredentialSeconds).toBeUndefined()
})

test.each([
  ['BadRequest', 400],
  ['Unauthorized', 401],
  ['Forbidden', 403],
  ['NotFound', 404],
  ['TooManyRequests', 429],
  ['InternalServerError', 500],
])('a %s under a 200 is a %d', (type, errorStatus) => {
  expect(videoOf('ark').readCreated(answer({ error: { code: 'X', message: 'no', type } }))).toEqual({ errorStatus })
})

const isStopped = (status: number) => videoOf('ark').cancel?.read(answer({}, status))

test('a cancellation succeeds or is refused by its status, and other errors throw', () => {
  expect([200, 204, 400, 403, 404, 409].map(isStopped)).toEqual([true, true, false, false, false, false])
  for (const status of [401, 429, 500]) expect(() => isStopped(status)).toThrow(GatewayError)
})
