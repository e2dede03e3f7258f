import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { array, errorOf, events, openGemini, thirdModel, user } from './testing.ts'

const { sandbox, root, say, post, bill, clearBill } = openGemini()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const unknown = (name: string, at: string) =>
  `Invalid JSON payload received. Unknown name "${name}" at '${at}': Cannot find field.`

describe('keys and addresses', () => {
  const body = JSON.stringify({ contents: [user('hi')] })
  const address = `${root}/models/gemini-2.0-flash:generateContent`

  test('a bad key is a 400', async () => {
    const error = await errorOf(say('hi', {}, { key: 'bad-key' }))
    expect(error).toMatchObject({
      http: 400,
      code: 400,
      status: 'INVALID_ARGUMENT',
      message: 'API key not valid. Please pass a valid API key.',
    })
    expect(error.details?.[0]).toMatchObject({ reason: 'API_KEY_INVALID', domain: 'googleapis.com' })
    expect(await bill()).toMatchObject([{ status: 400, cost: '0' }])
  })

  test('a missing key is a 403 and a bearer token a 401', async () => {
    expect(await errorOf(fetch(address, { method: 'POST', body }))).toMatchObject({
      http: 403,
      status: 'PERMISSION_DENIED',
    })
    const headers = { authorization: 'Bearer vendor-key' }
    expect(await errorOf(fetch(address, { method: 'POST', body, headers }))).toMatchObject({
      http: 401,
      status: 'UNAUTHENTICATED',
    })
  })

  test('an unknown model or method is a 404', async () => {
    for (const sent of [{ model: 'gemini-9' }, { method: 'generateAnswer' }]) {
      expect(await errorOf(say('hi', {}, sent))).toMatchObject({
        http: 404,
        status: 'NOT_FOUND',
        message: expect.stringContaining('is not found for API version v1beta'),
      })
    }
  })
})

describe('the validation of contents', () => {
  const text = { text: 'hi' }
  const image = (inlineData: object) => ({ contents: [{ role: 'user', parts: [text, { inlineData }] }] })

  test.each<[string, object, string]>([
    ['that are missing', {}, 'contents is not specified'],
    ['that are empty', { contents: [] }, 'contents is not specified'],
    [
      'without parts',
      { contents: [{ role: 'user', parts: [] }] },
      'contents[0].parts: contents.parts must not be empty',
    ],
    ['with an empty text', { contents: [user('')] }, "contents[0].parts[0].data: required oneof field 'data'"],
    ['with an empty part', { contents: [{ parts: [{}] }] }, "required oneof field 'data'"],
    [
      'with the role system',
      { contents: [{ role: 'system', parts: [text] }] },
      'Please use a valid role: user, model.',
    ],
    ['with the role assistant', { contents: [{ role: 'assistant', parts: [text] }] }, 'Please use a valid role'],
    [
      'with two kinds of data in one part',
      { contents: [{ parts: [{ text: 'hi', functionCall: { name: 'f' } }] }] },
      "oneof field 'data' is already set. Cannot set 'functionCall'",
    ],
    [
      'with a data: prefix',
      image({ mimeType: 'image/png', data: 'data:image/png;base64,aGk=' }),
      'Base64 decoding failed',
    ],
    [
      'with an unsupported media type',
      image({ mimeType: 'application/zip', data: 'aGk=' }),
      'Unsupported MIME type: application/zip',
    ],
    ['with a misspelt media type', image({ mimeType: 'image/jpg', data: 'aGk=' }), 'Unsupported MIME type: image/jpg'],
    [
      'behind a web link',
      { contents: [{ parts: [{ fileData: { fileUri: 'https://example.com/a.png' } }] }] },
      'Cannot fetch content from the provided URL',
    ],
    ['that are not a list', { contents: 'hi' }, "Invalid value at 'contents[0]'"],
    [
      'beside an empty system text',
      { contents: [user('hi')], systemInstruction: { parts: [] } },
      'system_instruction.parts',
    ],
  ])('contents %s are refused with a 400', async (_, body, message) => {
    expect(await errorOf(post(body))).toMatchObject({
      http: 400,
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining(message),
    })
    expect(await bill()).toMatchObject([{ status: 400, cost: '0' }])
  })

  test('contents longer than the context are refused', async () => {
    const error = await errorOf(say('a '.repeat(100_001)))
    expect(error.message).toMatch(
      /^The input token count \(\d+\) exceeds the maximum number of tokens allowed \(100000\)/,
    )
  })

  test('a body larger than 20 MB is refused', async () => {
    const data = 'A'.repeat(20 * 1024 * 1024)
    const parts = [{ inlineData: { mimeType: 'image/png', data } }]
    expect((await errorOf(post({ contents: [{ parts }] }))).message).toContain('payload size exceeds the limit')
  })
})

describe('the validation of fields', () => {
  test('all unknown fields are refused together, with their paths in the details', async () => {
    const error = await errorOf(say('hi', { messages: [], generationConfig: { max_tokens: 5 }, stream: true }))
    expect(error.message.split('\n')).toEqual([
      'Invalid JSON payload received. Unknown name "messages": Cannot find field.',
      unknown('max_tokens', 'generation_config'),
      'Invalid JSON payload received. Unknown name "stream": Cannot find field.',
    ])
    expect(error.details?.[0]).toMatchObject({
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      fieldViolations: [{ field: '' }, { field: 'generation_config' }, { field: '' }],
    })
  })

  test('a body that is not JSON is refused', async () => {
    expect((await errorOf(post('{"contents":'))).message).toStartWith('Invalid JSON payload received.')
  })

  const json = { responseMimeType: 'application/json' }
  const text = { type: 'STRING' }

  test.each<[object, string]>([
    [{ temperature: 'hot' }, 'Invalid value at \'generation_config.temperature\' (TYPE_FLOAT), "hot"'],
    [{ temperature: 2.1 }, 'temperature must be in the range [0.0, 2.0]'],
    [{ topP: 1.1 }, 'top_p must be in the range'],
    [{ topK: 0 }, 'top_k must be positive'],
    [{ maxOutputTokens: 1.5 }, '(TYPE_INT32), 1.5'],
    [{ maxOutputTokens: 0 }, 'maxOutputTokens value of 0'],
    [{ maxOutputTokens: 4_097 }, 'from 1 (inclusive) to 4097 (exclusive)'],
    [{ stopSequences: ['a', 'b', 'c', 'd', 'e', 'f'] }, 'at most 5 stop sequences'],
    [{ candidateCount: 9 }, 'candidate_count must be in the range [1, 8]'],
    [{ candidateCount: 0 }, 'candidate_count must be in the range [1, 8]'],
    [{ logprobs: 3 }, 'logprobs is only allowed when'],
    [{ responseMimeType: 'image/png' }, 'allowed mimetypes are'],
    [{ responseSchema: text }, 'response_schema is only allowed when'],
    [{ ...json, responseSchema: text, responseJsonSchema: {} }, 'Only one of response_schema'],
    [{ responseModalities: ['IMAGE'] }, 'only supports text output'],
    [{ thinkingConfig: { thinkingLevel: 'EXTREME' } }, 'ThinkingConfig.ThinkingLevel), "EXTREME"'],
  ])('generationConfig %p is refused', async (generationConfig, message) => {
    expect(await errorOf(say('hi', { generationConfig }))).toMatchObject({
      http: 400,
      message: expect.stringContaining(message),
    })
  })

  test('several candidates in a stream are refused', async () => {
    for (const method of [events, array]) {
      const error = await errorOf(say('hi', { generationConfig: { candidateCount: 2 } }, { method }))
      expect(error).toMatchObject({ http: 400, message: expect.stringContaining('Only one candidate') })
    }
  })

  test('logprobs on Gemini 3 and JSON with functions before it are refused', async () => {
    const logprobs = await errorOf(say('hi', { generationConfig: { responseLogprobs: true } }, { model: thirdModel }))
    expect(logprobs.message).toContain('Logprobs is not enabled')
    const both = { generationConfig: json, tools: [{ functionDeclarations: [{ name: 'f' }] }] }
    expect((await errorOf(say('hi', both))).message).toContain("response mime type: 'application/json' is unsupported")
    expect((await say('hi', both, { model: thirdModel })).status).toBe(200)
  })

  test('penalties other than 0 are refused from 2.5 on', async () => {
    for (const field of ['presencePenalty', 'frequencyPenalty']) {
      const penalised = (penalty: number) => ({ generationConfig: { [field]: penalty } })
      for (const model of ['gemini-2.5-flash', thirdModel]) {
        const error = await errorOf(say('hi', penalised(0.1), { model }))
        expect(error).toMatchObject({ http: 400, message: 'Penalty is not enabled for this model' })
        expect((await say('hi', penalised(0), { model })).status).toBe(200)
      }
      expect((await say('hi', penalised(0.1))).status).toBe(200)
    }
  })
})

const declared = (parameters: unknown): object => ({ tools: [{ functionDeclarations: [{ name: 'f', parameters }] }] })

describe('the validation of tools and their schemas', () => {
  const holding = (property: unknown) => declared({ type: 'object', properties: { a: property } })
  const at = 'tools[0].function_declarations[0].parameters'
  const inside = `${at}.properties[0].value`

  test.each<[object, string]>([
    [
      declared({ type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false }),
      unknown('additionalProperties', at),
    ],
    [declared({ $schema: 'x', type: 'object', properties: { a: { type: 'string' } } }), unknown('$schema', at)],
    [holding({ $ref: '#/$defs/b' }), unknown('$ref', inside)],
    [holding({ const: 1 }), unknown('const', inside)],
    [holding({ oneOf: [] }), unknown('oneOf', inside)],
    [holding({ type: 'integer', exclusiveMinimum: 1 }), unknown('exclusiveMinimum', inside)],
    [
      holding({ type: ['string', 'null'] }),
      `Unknown name "type" at '${inside}': Proto field is not repeating, cannot start list.`,
    ],
    [holding({ type: 'text' }), `Invalid value at '${inside}.type'`],
    [holding({ type: 'integer', enum: [1, 2] }), `Invalid value at '${inside}.enum[0]' (TYPE_STRING), 1`],
    [holding({ type: 'integer', enum: ['1'] }), 'parameters.properties[a].enum: only allowed for STRING type'],
    [holding({ type: 'string', format: 'uuid' }), "format: only 'enum' and 'date-time' are supported for STRING type"],
    [holding({ type: 'array' }), 'parameters.properties[a].items: missing field.'],
    [declared({ type: 'object', properties: {} }), 'parameters.properties: should be non-empty for OBJECT type'],
    [
      declared({ type: 'object', properties: { a: { type: 'string' } }, required: ['b'] }),
      'required[0]: property is not defined',
    ],
    [{ tools: [{ functionDeclarations: [{ name: '1f' }] }] }, 'Invalid function name'],
    [{ tools: [{ functionDeclarations: [{ name: 'f'.repeat(129) }] }] }, 'with a maximum length of 128'],
    [{ tools: [{ functionDeclarations: [{ name: 'f' }, { name: 'f' }] }] }, 'Duplicate function declaration found: f'],
    [{ tools: [{ functionDeclarations: [{ name: 'f', strict: true }] }] }, 'Unknown name "strict"'],
    [{ tools: [{ googleSearch: {}, functionDeclarations: [{ name: 'f' }] }] }, 'Tool use with function calling'],
    [{ toolConfig: { functionCallingConfig: { mode: 'ANY' } } }, 'without function_declarations'],
    [{ toolConfig: { functionCallingConfig: { mode: 'SOMETIMES' } } }, 'FunctionCallingConfig.Mode), "SOMETIMES"'],
    [
      { toolConfig: { functionCallingConfig: { mode: 'AUTO', allowedFunctionNames: ['f'] } } },
      'only when function calling mode is ANY',
    ],
  ])('%j is refused', async (more, message) => {
    expect(await errorOf(say('hi', more))).toMatchObject({ http: 400, message: expect.stringContaining(message) })
  })

  test('parametersJsonSchema accepts the keywords that parameters refuses', async () => {
    const parametersJsonSchema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { a: { type: ['string', 'null'] }, b: { oneOf: [{ const: 1 }] } },
      additionalProperties: false,
    }
    const tools = [{ functionDeclarations: [{ name: 'f', parametersJsonSchema }] }]
    expect((await say('hi', { tools })).status).toBe(200)
  })
})
