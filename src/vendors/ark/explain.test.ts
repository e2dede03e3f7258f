import { expect, test } from 'bun:test'
import { vendors } from '../index.ts'

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

test('too many films in line are a 429 that others hardly notice, and no account that has run dry', () => {
  expect(told(429, 'QuotaExceeded', 'TooManyRequests')).toMatchObject({
    error: { kind: 'too-many', details: { retryAfterSeconds: 1 } },
    retryable: true,
    restCredentialSeconds: 1,
  })
})

test.each(['AccountOverdueError', 'OperationDenied.ServiceOverdue'])('%s is the operator’s affair', (code) => {
  const verdict = { error: { kind: 'upstream-failed' }, retryable: true, restCredentialSeconds: 60 }
  expect(told(403, code, 'Forbidden')).toMatchObject(verdict)
})

test.each([
  [403, 'OperationDenied.ServiceNotOpen', 'Forbidden'],
  [403, 'OperationDenied.InvalidState', 'Forbidden'],
  [404, 'InvalidEndpointOrModel.ModelIDAccessDisabled', 'NotFound'],
  [400, 'InvalidEndpoint.ClosedEndpoint', 'BadRequest'],
  // The operator has set how much of this model may be used, and waiting brings none of it back.
  [429, 'SetLimitExceeded', 'TooManyRequests'],
])('a model that cannot be had now takes no other from anybody: %d %s', (status, code, type) => {
  const verdict = told(status, code, type)
  expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
  expect(verdict?.restCredentialSeconds).toBeUndefined()
})
