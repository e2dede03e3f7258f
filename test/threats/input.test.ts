import { describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { gatewayForTests } from '../support/gateway.ts'
import { recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { errorOf, says } from '../support/streams.ts'

const gateway = gatewayForTests()

const path = '/v1/chat/completions'
const chat = (body: unknown, headers: Record<string, string> = {}) => gateway.post(path, body, headers)
const sendBytes = (body: Uint8Array, headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...headers },
    body: body as Uint8Array<ArrayBuffer>,
  })
async function sentToVendor() {
  const call = (await gateway.calls()).at(-1)
  if (call === undefined) throw new Error('the vendor was not called')
  return call
}

/** Refused, free of charge, in the shape every client of the protocol reads. */
async function refused(send: () => Promise<Response>) {
  const error = await errorOf(await refusedForFree(gateway, send))
  expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'status', 'type'])
  return error
}

// B-01, B-06
describe('a body that is not a JSON object', () => {
  test.each([
    ['an open brace', '{'],
    ['a wrong bracket', '{]'],
    ['half a literal', 'nul'],
    ['an empty body', ''],
    ['only a space', ' '],
    ['a byte order mark', `\ufeff${JSON.stringify(says('Hello!'))}`],
    ['a brace too many', `${JSON.stringify(says('Hello!'))}}`],
    ['two objects', JSON.stringify(says('Hello!')).repeat(2)],
    ['a trailing comma', '{"model":"gpt-4o-mini","messages":[],}'],
    ['single quotes', "{'model':'gpt-4o-mini'}"],
    ['a bare control character', '{"model":"gpt-4o-mini\n"}'],
    ['NaN', '{"model":"gpt-4o-mini","temperature":NaN}'],
    ['an array', '[]'],
    ['a string', '"gpt-4o-mini"'],
    ['null', 'null'],
    ['a number', '12'],
  ])('an invalid body is a 400: %s', async (_name, body) => {
    const error = await refused(() => chat(body))
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', param: null })
  })

  // Whatever its protocol, a client's error message is made of this text.
  test.each([
    '/v1/chat/completions',
    '/v1/messages',
    '/v1/messages/count_tokens',
    '/v1/responses',
    '/v1/embeddings',
    '/v1/images/generations',
    '/v1/videos/generations',
    '/v1/audio/speech',
    '/mcp',
  ])('%s names the place of the mistake, and shows one character of the body', async (to) => {
    const accept = 'application/json, text/event-stream'
    const body = '{\n  "model": "canary",\n}'
    const answer = await refusedForFree(gateway, () => gateway.post(to, body, { accept }))
    const said = await answer.text()
    expect(said).toContain(
      'line 3, column 1 has `}` where another name in double quotes is expected; JSON has no comma after the last one.',
    )
    expect(said).not.toContain('canary')
  })

  test('bytes that are not UTF-8 are refused', async () => {
    const whole = Buffer.from(JSON.stringify(says('Hello XX!')))
    whole.set([0xff, 0xfe], whole.indexOf('XX'))
    expect(await refused(() => sendBytes(whole))).toMatchObject({ status: 400, code: 'invalid_utf8' })
    const overlong = Buffer.from(JSON.stringify(says('Hello XX!')))
    overlong.set([0xc0, 0xaf], overlong.indexOf('XX'))
    expect(await refused(() => sendBytes(overlong))).toMatchObject({ status: 400, code: 'invalid_utf8' })
  })

  test("half of a surrogate pair is sent to the vendor as U+FFFD and is charged by the vendor's usage", async () => {
    const answer = await chat(String.raw`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a\ud800b"}]}`)
    expect(answer.status).toBe(200)
    const { text } = await sentToVendor()
    expect(text).toContain('"content":"a\ufffdb"')
    expect(await recordOf(gateway, answer)).toMatchObject({ basis: 'vendor' })
  })
})

const nested = (depth: number) => `{"a":`.repeat(depth) + '1' + '}'.repeat(depth)

const nestedBody = (depth: number) =>
  `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}],"odd":${nested(depth)}}`

// B-03, B-04, B-13; how long it takes, and B-21: `stalls.test.ts`, `long-texts.test.ts`, `growing-texts.test.ts`.
describe('a body that is too deep, too full or compressed', () => {
  test('a million brackets are refused', async () => {
    for (const body of ['['.repeat(1_000_000), `{"a":${'['.repeat(1_000_000)}`, '{"a":'.repeat(200_000)]) {
      expect(await refused(() => chat(body))).toMatchObject({ status: 400, code: 'body_too_deep' })
    }
  })

  test('a body at the depth limit passes to the vendor, one deeper does not', async () => {
    expect((await chat(nestedBody(127))).status).toBe(200)
    expect(await refused(() => chat(nestedBody(128)))).toMatchObject({ status: 400, code: 'body_too_deep' })
  })

  test('brackets inside of strings do not count as depth', async () => {
    const answer = await chat(says(`${'['.repeat(1_000)}\\"${'{'.repeat(1_000)}`))
    expect(answer.status).toBe(200)
  })

  test('a million keys or list items are refused', async () => {
    const keys = Array.from({ length: 1_000_000 }, (_, index) => `"k${index}":0`).join(',')
    expect(await refused(() => chat(`{${keys}}`))).toMatchObject({ status: 400, code: 'too_many_keys' })
    const items = `{"odd":[${'0,'.repeat(1_000_000)}0]}`
    expect(await refused(() => chat(items))).toMatchObject({ status: 400, code: 'too_many_items' })
  })

  test('a compressed body is refused, in every encoding', async () => {
    const packed = gzipSync(JSON.stringify(says('Hello!')))
    for (const encoding of ['gzip', 'br', 'deflate', 'zstd', 'identity, gzip']) {
      const error = await refused(() => sendBytes(packed, { 'content-encoding': encoding }))
      expect(error).toMatchObject({ status: 415, code: 'unsupported_content_type' })
    }
    expect((await chat(says('Hello!'), { 'content-encoding': 'identity' })).status).toBe(200)
  })
})

// B-05
describe('keys that could change the prototype of objects', () => {
  const bodies = {
    'at the top': `{"__proto__":{"isAdmin":true},"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}`,
    'in metadata': `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}],"metadata":{"__proto__":"x"}}`,
    'in logit_bias': `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}],"logit_bias":{"__proto__":1}}`,
    'in a tool': `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"__proto__":{"isAdmin":true}}}}]}`,
    'written with escapes': String.raw`{"\u005f_proto__":{"isAdmin":true},"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}`,
    'in a message': `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi","__proto__":{"role":"system"}}]}`,
  }
  test.each(Object.entries(bodies))('__proto__ %s is refused', async (_where, body) => {
    expect(await refused(() => chat(body))).toMatchObject({ status: 400, param: '__proto__' })
    expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined()
  })

  test('__proto__ as a word in a text is accepted', async () => {
    expect((await chat(says('What is __proto__?'))).status).toBe(200)
  })

  test('constructor and prototype are ordinary names and are passed on', async () => {
    const parameters = {
      type: 'object',
      properties: { constructor: { type: 'string' }, prototype: { type: 'object', properties: {} } },
    }
    const tools = [{ type: 'function', function: { name: 'build', parameters } }]
    const answer = await chat(says('Hi', { tools, constructor: { prototype: { isAdmin: true } } }))
    expect(answer.status).toBe(200)
    const { body } = await sentToVendor()
    expect(body['tools']).toEqual(tools)
    expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined()
  })
})

const count = async (n: unknown) => {
  const answer = await chat(says('Hi', { n }))
  return ((await answer.json()) as { choices: unknown[] }).choices.length
}

// M-05, M-06, M-08; M-07: `test/spec/video-rules.test.ts`.
describe('agreement of what is priced with what is sent', () => {
  test('a duplicate key reaches the vendor once, with the value that we read', async () => {
    const answer = await chat('{"model":"gpt-4o-mini","n":1,"messages":[{"role":"user","content":"Hi"}],"n":3}')
    expect(answer.status).toBe(200)
    const { body, text } = await sentToVendor()
    expect(body['n']).toBe(3)
    expect(text.match(/"n":/g)).toHaveLength(1)
    const { choices } = (await answer.json()) as { choices: unknown[] }
    expect(choices).toHaveLength(3)
  })

  test('a body with two models is sent with the last of them and recorded under it', async () => {
    const answer = await chat(
      '{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}],"\\u006dodel":"gpt-4o-mini"}',
    )
    expect(answer.status).toBe(200)
    const { body, text } = await sentToVendor()
    expect(text.match(/"model":/g)).toHaveLength(1)
    expect(body['model']).toBe('gpt-4o-mini')
    expect(await recordOf(gateway, answer)).toMatchObject({ model: 'gpt-4o-mini' })
  })

  test('numbers that we do not read keep their digits', async () => {
    const long = `1${'2'.repeat(399)}`
    const answer = await chat(
      `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}],"odd":{"id":9007199254740993,"long":${long},"small":1e-400,"exact":0.1}}`,
    )
    expect(answer.status).toBe(200)
    const { text } = await sentToVendor()
    expect(text).toContain(`"odd":{"id":9007199254740993,"long":${long},"small":1e-400,"exact":0.1}`)
  })

  test.each([
    '-1',
    '0',
    '1.5',
    '"2"',
    'true',
    '[]',
    '{}',
    '1e309',
    '9007199254740993',
    `1${'0'.repeat(400)}`,
    '129',
    '-9007199254740993',
  ])('n as %s is refused', async (n) => {
    const error = await refused(() =>
      chat(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}],"n":${n}}`),
    )
    expect(error).toMatchObject({ status: 400, param: 'n' })
  })

  test('n as null gives one choice, and n as 11 gives eleven', async () => {
    expect(await count(null)).toBe(1)
    expect(await count(11)).toBe(11)
  })

  test.each([
    ['max_tokens', '0'],
    ['max_tokens', '-5'],
    ['max_tokens', '1.5'],
    ['max_tokens', '9007199254740993'],
    ['max_tokens', '1e400'],
    ['max_completion_tokens', '0'],
    ['max_completion_tokens', '"10"'],
    ['seed', '9007199254740993'],
    ['top_logprobs', '1e309'],
  ])('%s as %s is refused', async (field, value) => {
    const error = await refused(() =>
      chat(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}],"logprobs":true,"${field}":${value}}`),
    )
    expect(error).toMatchObject({ status: 400, param: field })
  })

  test('a decimal with more digits than a double holds is accepted', async () => {
    const answer = await chat(
      '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}],"temperature":0.70000000000000000000001,"top_p":1.0000000000000000}',
    )
    expect(answer.status).toBe(200)
    expect((await sentToVendor()).body).toMatchObject({ temperature: 0.7, top_p: 1 })
  })

  test.each([
    ['service_tier', 'priority'],
    ['service_tier', 'flex'],
    ['web_search_options', {}],
    ['web_search_options', { search_context_size: 'high' }],
    ['enable_search', true],
    ['search_options', { forced_search: true }],
    ['plugins', [{ id: 'web' }]],
    ['enable_code_interpreter', true],
    ['deferred', true],
    ['models', ['gpt-5-pro']],
    ['route', 'fallback'],
    ['preset', 'mine'],
    ['provider', { order: ['other'] }],
    ['fallbacks', ['gpt-5-pro']],
    ['context_window_fallbacks', [{ 'gpt-4o-mini': ['gpt-5-pro'] }]],
    ['modalities', ['text', 'audio']],
    ['modalities', ['image', 'text']],
    ['modalities', ['TEXT', 'IMAGE']],
  ])('%s as %j costs extra and has no price, so it is refused', async (field, value) => {
    const error = await refused(() => chat(says('Hi', { [field]: value })))
    expect(error).toMatchObject({ status: 400, param: field, code: 'unsupported_value' })
  })

  test('a service tier without extra cost and unknown fields are passed on', async () => {
    const answer = await chat(says('Hi', { service_tier: 'auto', brand_new_field: { a: [1, 'b', null] } }))
    expect(answer.status).toBe(200)
    const { body } = await sentToVendor()
    expect(body).toMatchObject({ service_tier: 'auto', brand_new_field: { a: [1, 'b', null] } })
  })
})

// B-07, B-08
describe('a field with an invalid value', () => {
  test.each([
    [{ messages: 'hi' }, 'messages'],
    [{ messages: [] }, 'messages'],
    [{ messages: {} }, 'messages'],
    [{ messages: undefined }, 'messages'],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content'],
    [{ messages: [{ role: 'nobody', content: 'Hi' }] }, 'messages[0].role'],
    [{ messages: [{ role: 'tool', content: 'Hi' }] }, 'messages[0].tool_call_id'],
    [{ messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'messages[0].content[0].text'],
    [{ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 'messages[0].content[0].image_url'],
    [{ temperature: '1' }, 'temperature'],
    [{ temperature: 2.01 }, 'temperature'],
    [{ top_p: -0.1 }, 'top_p'],
    [{ top_p: 1.1 }, 'top_p'],
    [{ frequency_penalty: 2.1 }, 'frequency_penalty'],
    [{ presence_penalty: -2.1 }, 'presence_penalty'],
    [{ stop: {} }, 'stop'],
    [{ stop: ['1', '2', '3', '4', '5'] }, 'stop'],
    [{ stream: 'true' }, 'stream'],
    [{ tools: {} }, 'tools'],
    [{ tool_choice: 'auto' }, 'tool_choice'],
    [{ parallel_tool_calls: true }, 'parallel_tool_calls'],
    [{ top_logprobs: 2 }, 'top_logprobs'],
    [{ stream_options: { include_usage: true } }, 'stream_options'],
    [{ model: undefined }, 'model'],
    [{ model: null }, 'model'],
    [{ model: 5 }, 'model'],
    [{ model: ['gpt-4o-mini'] }, 'model'],
  ])('%j is refused with the name of the field', async (fields, param) => {
    const error = await refused(() => chat({ ...says('Hi'), ...fields }))
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', param })
  })
})

// B-22
describe('a wrong method or content type', () => {
  test.each([
    ['GET', path, 'POST'],
    ['PUT', path, 'POST'],
    ['DELETE', path, 'POST'],
    ['PATCH', path, 'POST'],
    ['OPTIONS', path, 'POST'],
    ['POST', '/v1/models', 'GET, HEAD'],
    ['DELETE', '/v1/models/gpt-4o-mini', 'GET, HEAD'],
    ['POST', '/healthz', 'GET, HEAD'],
    ['PUT', '/v1/videos/generations', 'POST, GET, HEAD'],
  ])('%s %s is a 405 that names the allowed methods', async (method, target, allow) => {
    const answer = await refusedForFree(gateway, () =>
      fetch(gateway.url + target, { method, headers: { authorization: `Bearer ${gateway.key}` } }),
    )
    expect(answer.headers.get('allow')).toBe(allow)
    expect(await errorOf(answer)).toMatchObject({ status: 405, code: 'method_not_supported' })
  })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
  ])('a body of type %s is a 415', async (type) => {
    const error = await refused(() => chat(says('Hello!'), { 'content-type': type }))
    expect(error).toMatchObject({ status: 415, code: 'unsupported_content_type' })
  })

  test('the content type may be in any case and have a charset', async () => {
    for (const type of ['Application/JSON', 'application/json; charset=utf-8', 'application/json;charset=UTF-8']) {
      expect((await chat(says('Hello!'), { 'content-type': type })).status).toBe(200)
    }
  })

  test('every error carries an id of ours, never the client’s', async () => {
    const answers = await refusedForFree(gateway, async () => [
      await chat('{', { 'x-request-id': 'mine' }),
      await fetch(`${gateway.url}/nothing`, { headers: { 'x-request-id': 'mine' } }),
      await fetch(gateway.url + path, { headers: { 'x-request-id': 'mine' } }),
      await fetch(`${gateway.url}/v1/models`, { headers: { 'x-request-id': 'mine' } }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([400, 404, 405, 401])
    for (const answer of answers) {
      expect(answer.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
      expect(Object.keys(await errorOf(answer)).toSorted()).toEqual(['code', 'message', 'param', 'status', 'type'])
    }
  })
})

// B-19
describe('text with line breaks and control characters', () => {
  const ugly = 'a\r\nX-Injected: y\u001b[2J\u0000'

  test('the text stays within one line of the log and out of the headers', async () => {
    const from = gateway.logged.length
    const answers = [
      await chat(says(`${ugly} sandbox:status=500`, { user: ugly })),
      await chat(says('Hi', { model: ugly })),
      await chat(says('Hi', { reasoning_effort: ugly, service_tier: ugly })),
      await fetch(`${gateway.url}/${encodeURIComponent(ugly)}`),
    ]
    for (const answer of answers) {
      expect(answer.headers.has('x-injected')).toBe(false)
      expect(await answer.json()).toHaveProperty('error')
    }
    const written = gateway.logged.slice(from)
    expect(written.length).toBeGreaterThan(0)
    for (const line of written) {
      expect(line.trimEnd()).not.toMatch(/\p{Cc}/u)
      expect(JSON.parse(line)).toBeObject()
    }
  })
})
