import { expect, test } from 'bun:test'
import { explain as explainAnthropic } from '../anthropic/explain.ts'
import { explain, statusInside } from './explain.ts'

const secrets = { baseUrl: 'https://api.vendor.example/v1', credential: 'vk-0123456789abcdef' }
const told = (status: number, body: string, given = secrets) =>
  explain({ status, retryAfterSeconds: undefined, body }, given)

test.each([
  ['{"object":"error","message":"extra fields not permitted"}', 'extra fields not permitted'],
  ['{"code":"x","error":"Argument not supported: stop"}', 'Argument not supported: stop'],
  // Mistral, which has written its list of fields in each of these places
  [
    '{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",0,"user","name"],"msg":"Extra inputs are not permitted","input":""},{"loc":["body","n"],"msg":"Too many"}]},"type":"invalid_request_error","param":null,"code":null}',
    'messages[0].user.name: Extra inputs are not permitted; n: Too many',
  ],
  ['{"object":"Error","detail":[],"message":[{"loc":["body","tools"],"msg":"Extra inputs"}]}', 'tools: Extra inputs'],
  ['{"detail":[{"type":"missing","loc":["body","store"],"msg":"Field required"}]}', 'store: Field required'],
  ['{"detail":"Input is too long."}', 'Input is too long.'],
  ['{"error":{"message":{"detail":"A text within"},"code":400}}', 'A text within'],
  ['{"error":{"message":null,"type":5}}', 'The request was refused.'],
  ['{"error":{}}', 'The request was refused.'],
])("a refusal in the vendor's own shape keeps its status and message: %s", (body, message) => {
  const { error, retryable } = told(422, body)
  expect(error.message).toBe(message)
  expect(error.details.refusal).toMatchObject({ status: 422, protocol: 'none' })
  expect(retryable).toBe(false)
})

test.each(['<html>bad request</html>', '', 'null', '[]', '"no"', '{}', '{"detail":[]}', '{"message":[[{"msg":"x"}]]}'])(
  'a refusal without a message is upstream-failed: %j',
  (body) => {
    expect(told(400, body)).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
  },
)

const quoted = 'a'.repeat(100_000)

test.each([
  { error: { message: `Invalid value: '${quoted}'.`, type: 'invalid_request_error', param: 'n', code: null } },
  { detail: [{ loc: ['body', 'n'], msg: `Invalid value: '${quoted}'.`, input: quoted }] },
])('a refusal that repeats a long request passes on as the beginning of its message', (body) => {
  const { error } = told(422, JSON.stringify(body))
  expect(error.details.refusal).toEqual({ status: 422, protocol: 'none', body: '' })
  expect(error.message).toMatch(/Invalid value: 'a{3900,3990}…$/)
})

test.each(['<html>413 Request Entity Too Large</html>', ''])(
  'a 413 is too-large, even without a readable body: %j',
  (body) => {
    expect(told(413, body)).toMatchObject({ error: { kind: 'too-large' }, retryable: false })
  },
)

const refusedKey = 'Incorrect API key provided: vk-01***ef'

test.each([
  [400, refusedKey],
  [400, 'Invalid API key'],
  [401, refusedKey],
  [402, refusedKey],
  [403, refusedKey],
])('a refused key under a %d is upstream-failed and rests: %s', (status, error) => {
  const verdict = told(status, JSON.stringify({ error }))
  expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true, restCredentialSeconds: 60 })
})

test('a refusal that quotes "invalid api key" from the request does not rest the key', () => {
  const message = "Invalid schema for function 'f': 'invalid api key' is not valid under any of the given schemas."
  const verdict = told(400, JSON.stringify({ error: { message, type: 'invalid_request_error', param: 'tools' } }))
  expect(verdict).toMatchObject({ error: { kind: 'upstream-rejected', message }, retryable: false })
  expect(verdict.restCredentialSeconds).toBeUndefined()
})

test.each([
  // OpenRouter, then xAI
  '{"error":{"code":403,"message":"Input was flagged","metadata":{"reasons":["violence"],"flagged_input":"…"}}}',
  '{"error":{"code":403,"message":"Request blocked: prompt injection patterns detected"}}',
  '{"code":"The caller does not have permission","error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}',
])('a 403 about the content is upstream-rejected and does not rest the key: %s', (body) => {
  const verdict = told(403, body)
  expect(verdict).toMatchObject({ error: { kind: 'upstream-rejected' }, retryable: false })
  expect(verdict.error.details.refusal).toMatchObject({ status: 403 })
  expect(verdict.restCredentialSeconds).toBeUndefined()
})

test.each([
  '{"error":{"message":"The API key has no permission","code":"permission_denied"}}',
  '{"error":{"message":"Your account has been flagged for review."}}',
  '{"error":{"message":"This API key was disabled: its organization violates our terms."}}',
  '',
])('any other 403 rests the key: %s', (body) => {
  const verdict = told(403, body)
  expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true, restCredentialSeconds: 60 })
})

test.each([
  [408, 'upstream-timeout', true],
  [504, 'upstream-timeout', true],
  [404, 'upstream-failed', true],
  [500, 'upstream-failed', true],
  [503, 'upstream-failed', true],
  [409, 'upstream-rejected', false],
] as const)('a %d is %s', (status, kind, retryable) => {
  const verdict = told(status, '{"error":{"message":"so it is"}}')
  expect(verdict).toMatchObject({ error: { kind }, retryable })
  expect(verdict.restCredentialSeconds).toBeUndefined()
})

test('a 401 rests the key, even if its message speaks of the request', () => {
  expect(told(401, '{"error":{"message":"Your request was blocked."}}').restCredentialSeconds).toBe(60)
})

test.each([
  [
    '{"error":{"message":"This model\'s maximum context length is 8192 tokens."}}',
    ": This model's maximum context length is 8192 tokens.",
  ],
  ['Too many images.', ': Too many images.'],
  ['<html>bad gateway</html>', ''],
  [7, ''],
])('a refusal that OpenRouter relays from %j keeps the words of both', (raw, words) => {
  const body = JSON.stringify({ error: { message: 'Provider returned error', code: 400, metadata: { raw } } })
  const { error } = told(400, body)
  expect(error.message).toBe(`Provider returned error${words}`)
  expect(error.details.refusal).toEqual({ status: 400, protocol: 'openai', body })
})

test('a refusal in the common protocol is passed on unchanged', () => {
  const body = '{"error":{"message":"so it is","param":"stop"}}'
  expect(told(400, body).error.details.refusal).toEqual({ protocol: 'openai', status: 400, body })
})

const openai = (message: string) =>
  JSON.stringify({
    error: { message, type: 'invalid_request_error', param: null, code: null },
  })

test.each([
  [403, 'Your organization must be verified to use the model `gpt-image-2`. Please go to: https://vendor.example'],
  [401, 'You have insufficient permissions for this operation. Missing scopes: api.model.images.request. Check that'],
])('a %d about one kind of model does not rest the key: %s', (status, message) => {
  const verdict = told(status, openai(message))
  expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
  expect(verdict.restCredentialSeconds).toBeUndefined()
})

test.each([
  // OpenAI, for a model that the project of the key may not use
  [403, '{"error":{"message":"x","type":"invalid_request_error","param":null,"code":"model_not_found"}}'],
  // Ark, for a model that the account has not activated
  [403, '{"error":{"message":"x","type":"Forbidden","param":"","code":"OperationDenied.ServiceNotOpen"}}'],
  // Hugging Face, for a model that no server behind its router has
  [400, '{"error":{"message":"x","type":"invalid_request_error","param":"model","code":"model_not_supported"}}'],
  // Groq, for models that the owner of the account has switched off, or whose terms the owner has not accepted
  [403, '{"error":{"message":"x","type":"permissions_error","code":"model_permission_blocked_org"}}'],
  [403, '{"error":{"message":"x","type":"permissions_error","code":"model_permission_blocked_project"}}'],
  [400, '{"error":{"message":"x","type":"invalid_request_error","code":"model_terms_required"}}'],
  // Together, for a model that it has only at an endpoint of one's own
  [400, '{"error":{"message":"x","type":"invalid_request_error","param":"model","code":"model_not_available"}}'],
  // Zhipu, for a model that it does not have, and for one that the plan does not include
  [400, '{"error":{"code":"1211","message":"x"}}'],
  [429, '{"error":{"code":"1311","message":"x"}}'],
  // SiliconFlow, then Mistral
  [403, '{"code":30003,"message":"Model disabled.","data":null}'],
  [400, '{"code":20012,"message":"Model does not exist. Please check it carefully.","data":null}'],
  [400, '{"object":"error","message":"Invalid model: x","type":"invalid_model","code":"1500"}'],
  // Runway, then Ollama of its models in the cloud
  [403, '{"error":"Model variant gen4_aleph is not available"}'],
  [403, '{"error":"this model requires a subscription, upgrade for access: https://vendor.example/upgrade"}'],
  // LiteLLM, Bifrost and New API in front of a vendor
  [401, '{"error":{"message":"x","type":"key_model_access_denied","param":"model","code":"401"}}'],
  [403, `{"error":{"message":"Model 'x' is not allowed for this virtual key"}}`],
  [403, '{"error":{"message":"该令牌无权访问模型 x","type":"new_api_error"}}'],
])('a %d about a model that the account lacks does not rest the key: %s', (status, body) => {
  const verdict = told(status, body)
  expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
  expect(verdict.restCredentialSeconds).toBeUndefined()
})

test('the same words quoted from the request are upstream-rejected', () => {
  const message = "Invalid value: 'organization must be verified to use the model'. Supported values are: 'auto'."
  expect(told(400, openai(message))).toMatchObject({ error: { kind: 'upstream-rejected' }, retryable: false })
})

test('a key without permission for any model rests', () => {
  const message = 'You have insufficient permissions for this operation. Missing scopes: model.request. Check that'
  expect(told(401, openai(message)).restCredentialSeconds).toBe(60)
})

test('a plain word that serves as a key is not redacted from a message', () => {
  const local = { baseUrl: 'http://127.0.0.1:11434/v1', credential: 'local' }
  const { error } = told(400, '{"error":{"message":"localhost has no local model"}}', local)
  expect(error.message).toBe('localhost has no local model')
})

test.each([
  ['Content violates usage guidelines. Team: 0f8d-1a, API key ID: 77ab-9c, Model: grok-4', /0f8d-1a|77ab-9c/],
  ['input was flagged for organization org-AbCdEfGhIjKlMnOpQrSt, project proj_AbCdEfGhIjKlMnOpQrSt', /AbCd/],
])("the vendor's account and key ids are redacted: %s", (message, hidden) => {
  const { error } = told(403, JSON.stringify({ error: { message: message } }))
  expect(JSON.stringify([error.message, error.details.refusal])).not.toMatch(hidden)
  expect(error.message).toMatch(/ \[redacted\], .* \[redacted\]/)
})

test('text that looks like a key is redacted, even if it is not ours', () => {
  const { error } = told(400, '{"error":{"message":"see sk-abcdefghijkl at api.vendor.example"}}')
  expect(error.message).toBe('see [redacted] at [redacted]')
})

test('a refusal in plain text keeps its status and its words', () => {
  const { error, retryable } = told(422, 'Failed to deserialize the JSON body: missing field `messages`\n')
  expect({ error, retryable }).toMatchObject({
    error: { kind: 'upstream-rejected', message: 'Failed to deserialize the JSON body: missing field `messages`' },
    retryable: false,
  })
  expect(error.details.refusal).toMatchObject({ status: 422, protocol: 'none' })
})

test.each([
  ['a page', ' <!doctype html><p>no</p>'],
  ['compressed', '\x1f\ufffd\b\0no'],
  ['a dump', 'no '.repeat(500)],
  ['half of an answer', '{"error":{"mess'],
])('a refusal that is no sentence is the vendor’s failure: %s', (_what, body) => {
  expect(told(400, body)).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
})

test.each([
  // OpenAI
  [
    429,
    '{"error":{"message":"Your account is not active, please check your billing details on our website.","type":"billing_not_active","param":null,"code":"billing_not_active"}}',
  ],
  [
    429,
    '{"error":{"message":"Your access was terminated due to violation of our policies.","type":"access_terminated","param":null,"code":null}}',
  ],
  [429, '{"error":{"message":"x","type":"requests","param":null,"code":"credit_balance_exhausted"}}'],
  [
    400,
    '{"error":{"message":"x","type":"image_generation_user_error","param":null,"code":"billing_hard_limit_reached"}}',
  ],
  // Groq
  [400, '{"error":{"message":"Organization has been restricted. Please reach out to support.","type":"x"}}'],
  // Zhipu, in two languages
  [429, '{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}'],
  [429, '{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}'],
  // Fireworks
  [
    412,
    '{"error":{"message":"Account acme is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.","code":"PRECONDITION_FAILED","type":"error"}}',
  ],
  // xAI
  [
    429,
    '{"code":"Some resource has been exhausted","error":"Your team 1-2 has either used all available credits or reached its monthly spending limit."}',
  ],
])('an account that is closed or without credit rests the key, and no client is told: %d %s', (status, body) => {
  const verdict = told(status, body)
  expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true, restCredentialSeconds: 60 })
  expect(verdict.error.details.refusal).toBeUndefined()
})

test('words about an account that are quoted from the request do not rest the key', () => {
  const message = "Unknown parameter: 'Account acme is suspended'."
  const verdict = told(400, JSON.stringify({ error: { message } }))
  expect(verdict).toMatchObject({ error: { kind: 'upstream-rejected', message }, retryable: false })
  expect(verdict.restCredentialSeconds).toBeUndefined()
})

test.each([explain, explainAnthropic])(
  "a firewall's page with a 403 does not rest the key, because a customer's words may be the reason",
  (judge) => {
    const body = '\n<!DOCTYPE html><html><title>Attention Required!</title>Sorry, you have been blocked</html>'
    const verdict = judge({ status: 403, retryAfterSeconds: undefined, body }, secrets)
    expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
    expect(verdict.restCredentialSeconds).toBeUndefined()
  },
)

test("MiniMax's 429 for an account without credit rests the key like a refused one", () => {
  const error = { http_code: '429', message: 'insufficient balance (1008)', type: 'insufficient_balance_error' }
  const verdict = told(429, JSON.stringify({ error }))
  expect(verdict).toMatchObject({ error: { kind: 'upstream-failed' }, restCredentialSeconds: 60 })
})

const listed = (message: string) => JSON.stringify([{ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }])

test('a refusal of Google’s endpoint for this protocol, which comes in a list, is judged as Google’s', () => {
  const { error, retryable } = told(400, listed('Function call is missing a thought_signature.'))
  expect(error).toMatchObject({ kind: 'upstream-rejected', message: 'Function call is missing a thought_signature.' })
  expect(error.details.refusal).toMatchObject({ status: 400, protocol: 'gemini' })
  expect(retryable).toBe(false)
  const ofKey = told(400, listed('API key not valid. Please pass a valid API key.'))
  expect(ofKey).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true, restCredentialSeconds: 60 })
})

test.each([
  ['{"error":{"code":402,"message":"No credits."}}', 402],
  ['{"error":null,"data":[]}', 200],
  ['{"data":[{"embedding":[1]}]}', 200],
  // What was made is delivered and charged, whatever stands beside it.
  ['{"data":[{"embedding":[1]}],"error":{"code":402,"message":"No credits."}}', 200],
])('the status inside a 2xx answer is read: %s', (body, status) => {
  expect(statusInside(Buffer.from(body))).toBe(status)
})
