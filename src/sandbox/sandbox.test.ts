import { afterAll, describe, expect, test } from 'bun:test'
import { errorOf, openSandbox } from './testing.ts'

const { sandbox, say, post, calls } = openSandbox()
afterAll(() => sandbox.stop())

const authorized = { headers: { authorization: 'Bearer k' } }

describe('the addresses of the simulators', () => {
  test("baseUrl returns the address that the vendor's SDK takes as its base address", () => {
    expect(sandbox.baseUrl('openai')).toBe(`http://127.0.0.1:${sandbox.port}/openai/v1`)
    expect(sandbox.baseUrl('dashscope')).toBe(`http://127.0.0.1:${sandbox.port}/dashscope`)
    expect(sandbox.baseUrl('ark')).toBe(`http://127.0.0.1:${sandbox.port}/ark/api/v3`)
  })

  test.each([
    ['deepseek', 'reasoner'],
    ['dashscope', 'qwen-plus'],
    ['ark', 'doubao'],
  ])('a chat completion is answered at the base address of %s', async (vendor, model) => {
    const response = await say('hi', { model }, { vendor })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ model, object: 'chat.completion' })
  })

  test('the models of a vendor are listed and shown one by one', async () => {
    const list = await fetch(`${sandbox.baseUrl('openai')}/models`, authorized)
    expect(await list.json()).toMatchObject({
      object: 'list',
      data: expect.arrayContaining([expect.objectContaining({ id: 'plain', owned_by: 'openai' })]),
    })
    const one = await fetch(`${sandbox.baseUrl('openai')}/models/org%2Fslashed`, authorized)
    expect(await one.json()).toMatchObject({ id: 'org/slashed', object: 'model' })
    const none = await fetch(`${sandbox.baseUrl('openai')}/models/none`, authorized)
    expect(await errorOf(none)).toMatchObject({ status: 404, code: 'model_not_found' })
  })

  test.each([
    ['openai', '/models', 'model_not_found'],
    ['ark', '/contents/generations/tasks', 'NotFound.Task'],
  ])('an id at %s that cannot be decoded is not found', async (vendor, path, code) => {
    const response = await fetch(`${sandbox.baseUrl(vendor)}${path}/%E0%A4`, authorized)
    expect(await errorOf(response)).toMatchObject({ status: 404, code })
  })

  test('an unknown path is a 404 and a wrong method a 405', async () => {
    expect(await errorOf(fetch(`${sandbox.url}/openai/v1/nothing`, { method: 'POST' }))).toMatchObject({
      status: 404,
      code: 'unknown_url',
    })
    expect(await errorOf(fetch(`${sandbox.url}/__nothing`))).toMatchObject({ status: 404, code: 'unknown_url' })
    expect(await errorOf(fetch(`${sandbox.baseUrl('openai')}/chat/completions`))).toMatchObject({ status: 405 })
  })
})

describe('vendor keys', () => {
  test('a request without a key is a 401', async () => {
    const response = await fetch(`${sandbox.baseUrl('openai')}/chat/completions`, { method: 'POST', body: '{}' })
    expect(await errorOf(response)).toMatchObject({ status: 401, type: 'invalid_request_error', code: null })
  })

  test("a bad key is refused in the vendor's own error format", async () => {
    expect(await errorOf(say('hi', {}, { key: 'bad-key' }))).toMatchObject({ status: 401, code: 'invalid_api_key' })
    const ark = await say('hi', { model: 'doubao' }, { vendor: 'ark', key: 'bad-key' })
    expect(await errorOf(ark)).toMatchObject({ status: 401, code: 'AuthenticationError', type: 'Unauthorized' })
    const dashscope = await say('hi', { model: 'qwen-plus' }, { vendor: 'dashscope', key: 'bad-key' })
    expect(await dashscope.json()).toMatchObject({ error: { code: 'invalid_api_key' }, request_id: expect.any(String) })
  })
})

describe('the recorded calls', () => {
  test('a call is shown exactly as received, large numbers included', async () => {
    await fetch(`${sandbox.url}/__calls`, { method: 'DELETE' })
    const body = '{"model":"plain","messages":[{"role":"user","content":"hi"}],"metadata":{"big":12345678901234567890}}'
    await post(body, { ref: 'r-1', key: 'seen' })
    await post('not json', {})
    const [first, second] = await calls()
    expect(first).toMatchObject({
      vendor: 'openai',
      path: '/openai/v1/chat/completions',
      ref: 'r-1',
      authorization: 'Bearer seen',
      headers: { 'x-client-request-id': 'r-1' },
      body: { model: 'plain' },
      text: body,
    })
    expect(second).toMatchObject({ ref: null, body: 'not json' })
  })

  test('only the last thousand calls are kept', async () => {
    for (let batch = 0; batch < 11; batch += 1) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => say('hi', {}, { ref: `${batch}-${index}` })))
    }
    const kept = await calls()
    expect(kept.length).toBe(1_000)
    expect(kept[0]?.ref?.startsWith('1-')).toBe(true)
  })
})
