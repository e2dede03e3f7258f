import { expect, test } from 'bun:test'
import { explain } from './explain.ts'

const secrets = { baseUrl: 'https://dashscope.vendor.example', credential: 'vk-0123456789abcdef' }
const told = (status: number, body: unknown) =>
  explain({ status, retryAfterSeconds: undefined, body: JSON.stringify(body) }, secrets)
const common = (code: string, type = 'invalid_request_error') => ({ error: { message: 'no', type, param: null, code } })

test("a refusal in the vendor's own protocol that repeats a long request passes on as its beginning", () => {
  const { error } = told(400, { code: 'InvalidParameter', message: `no: ${'a'.repeat(100_000)}`, request_id: 'r' })
  expect(error.details.refusal).toEqual({ status: 400, protocol: 'none', body: '' })
  expect(error.message.length).toBeLessThanOrEqual(4_000)
})

test.each([
  ['requests', common('limit_requests', 'limit_requests')],
  ['tokens', common('insufficient_quota', 'insufficient_quota')],
  ["requests (in the vendor's own protocol)", { code: 'Throttling.RateQuota', message: 'slow down', request_id: 'r' }],
])('too many %s a minute are too-many and rest the key for a second', (_what, body) => {
  expect(told(429, body)).toMatchObject({
    error: { kind: 'too-many', details: { retryAfterSeconds: 1 } },
    retryable: true,
    restCredentialSeconds: 1,
  })
})

test.each([
  ['in the common protocol', 400, common('Arrearage', 'Arrearage')],
  ['in the common protocol with status 403', 403, common('Arrearage', 'Arrearage')],
  ['in the common protocol with status 429', 429, common('Arrearage', 'Arrearage')],
  ["in the vendor's own protocol", 400, { code: 'Arrearage', message: 'overdue', request_id: 'r' }],
  ['as a service that was not bought', 429, { code: 'CommodityNotPurchased', message: 'no', request_id: 'r' }],
  ['as an overdue bill', 429, { code: 'PostpaidBillOverdue', message: 'overdue', request_id: 'r' }],
])('an overdue account rests the key for a minute: %s', (_how, status, body) => {
  const verdict = { error: { kind: 'upstream-failed' }, retryable: true, restCredentialSeconds: 60 }
  expect(told(status, body)).toMatchObject(verdict)
})

// As a code that came with a 2xx is judged.
test.each(['InvalidApiKey', 'AccessDenied', 'Workspace.AccessDenied'])(
  'a refused key rests for a minute: %s',
  (code) => {
    const verdict = { error: { kind: 'upstream-failed' }, retryable: true, restCredentialSeconds: 60 }
    expect(told(400, { code, message: 'no', request_id: 'r' })).toMatchObject(verdict)
  },
)

test.each([
  ['as not found', { code: 'ModelNotFound', message: 'no', request_id: 'r' }],
  ['in a workspace that is not found', { code: 'WorkSpaceNotFound', message: 'no', request_id: 'r' }],
  ['in the common protocol', common('Model.AccessDenied')],
  ["in the vendor's own protocol", { code: 'Model.AccessDenied', message: 'no', request_id: 'r' }],
  ['as not purchased', { code: 'AccessDenied.Unpurchased', message: 'no', request_id: 'r' }],
  // The free quota is per model.
  ['as a used-up free quota', common('AllocationQuota.FreeTierOnly', 'AllocationQuota.FreeTierOnly')],
  [
    "as a used-up free quota in the vendor's own protocol",
    { code: 'AllocationQuota.FreeTierOnly', message: 'no', request_id: 'r' },
  ],
])('a model that the account lacks does not rest the key: %s', (_how, body) => {
  for (const status of [400, 403]) {
    const verdict = told(status, body)
    expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
    expect(verdict.restCredentialSeconds).toBeUndefined()
  }
})

test.each([
  ['DataInspectionFailed', 'content_policy_violation'],
  ['InvalidParameter', undefined],
])('only refused content has the common code for it: %s', (code, shown) => {
  const { error } = told(400, { code, message: 'no', request_id: 'r' })
  expect(error).toMatchObject({ kind: 'upstream-rejected', message: 'no' })
  expect(error.details.code).toBe(shown)
})
