import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import type { JsonObject } from '../../base/json.ts'
import { type Conversation, markGoogle, type Turn } from '../../capabilities/conversation.ts'
import { plainConversation as plain } from '../../capabilities/testing.ts'
import { type AskTarget, writeAsk } from './write-ask.ts'

const hi: Turn = { role: 'user', blocks: [{ kind: 'text', text: 'Hi' }] }
const second: AskTarget = {
  upstreamModel: 'gemini-2.5-flash',
  efforts: ['none', 'minimal', 'low', 'medium', 'high'],
  outputTokensMax: 1_000,
  protocol: 'openai',
}
const third: AskTarget = { ...second, upstreamModel: 'gemini-3-pro-preview', efforts: ['low', 'high'] }

const written = (changed: Partial<Conversation>, target = second) => writeAsk({ ...plain, ...changed }, target)
const contents = (turns: readonly Turn[], target = second): unknown => written({ turns }, target)['contents']
const config = (changed: Partial<Conversation>, target = second) => written(changed, target)['generationConfig']

/** The error that is thrown for a conversation that cannot be written. */
function refusal(changed: Partial<Conversation>, target = second) {
  const { kind, details } = errorOf(() => written(changed, target))
  return { kind, param: details.param }
}

const text = (...texts: readonly string[]) => texts.map((said) => ({ kind: 'text' as const, text: said }))
const user = (...texts: readonly string[]): Turn => ({ role: 'user', blocks: text(...texts) })
const assistant = (...texts: readonly string[]): Turn => ({ role: 'assistant', blocks: text(...texts) })
const said = (role: string, ...texts: readonly string[]) => ({ role, parts: texts.map((words) => ({ text: words })) })

describe('messages and instructions', () => {
  test('a single message becomes a single content, and no other field is sent', () => {
    expect(written({})).toEqual({ contents: [said('user', 'Hi')] })
  })

  test('instructions are sent beside the contents, also those from between the messages', () => {
    const between: Turn = { role: 'system', blocks: text('And kind.') }
    const ask = written({ system: text('Be brief.', ''), turns: [user('a'), between, user('b')] })
    expect(ask).toEqual({
      systemInstruction: { parts: [{ text: 'Be brief.' }, { text: 'And kind.' }] },
      contents: [said('user', 'a', 'b')],
    })
  })

  test("instructions without messages are sent as the user's message", () => {
    expect(written({ system: text('Sing.'), turns: [] })).toEqual({ contents: [said('user', 'Sing.')] })
  })

  test('a conversation without any text is a bad request', () => {
    expect(refusal({ turns: [user('')] })).toEqual({ kind: 'bad-request', param: 'messages' })
  })

  test.each([
    ['gemini-2.5-flash', true],
    ['gemini-3.1-pro-preview', true],
    ['gemini-3.5-flash', true],
    ['gemini-3.5-flash-lite', false],
    ['gemini-3.6-flash', false],
    ['gemini-3.10-flash', false],
    ['gemini-4-pro', false],
    ['gemini-flash-latest', false],
  ])('%s continues its own last message unasked: %p; other models are asked to go on', (upstreamModel, goesOn) => {
    const begun = [said('user', 'a'), said('model', 'Once')]
    const asked = contents([user('a'), assistant('Once')], { ...second, upstreamModel })
    expect(asked).toEqual(goesOn ? begun : [...begun, said('user', 'Go on.')])
    expect(contents([user('a')], { ...second, upstreamModel })).toEqual([said('user', 'a')])
  })

  test('empty messages are left out, and their neighbours are joined', () => {
    expect(contents([user('a'), assistant(''), user('b', '')])).toEqual([said('user', 'a', 'b')])
    expect(contents([user('a'), assistant('x', 'y'), user('b')])).toEqual([
      said('user', 'a'),
      said('model', 'x', 'y'),
      said('user', 'b'),
    ])
  })

  test("a refusal is sent as the model's text, and reasoning of other vendors is left out", () => {
    const blocks = [
      { kind: 'thinking', text: 'hm', signature: 'of another' },
      { kind: 'thinking-redacted', data: 'xx' },
      { kind: 'refusal', text: 'No.' },
    ] as const
    expect(contents([hi, { role: 'assistant', blocks }, hi])).toEqual([
      said('user', 'Hi'),
      said('model', 'No.'),
      said('user', 'Hi'),
    ])
  })
})

const bytes = { kind: 'bytes', mediaType: 'image/png', base64: 'iVBORw0KGgo=' } as const
const inline = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }
const jpeg = { inlineData: { mimeType: 'image/jpeg', data: 'SGk=' } }

describe('media', () => {
  test.each([
    ['bytes', bytes, inline],
    ['bytes of a misspelt type', { ...bytes, mediaType: 'image/jpg', base64: 'SGk=' }, jpeg],
    ['bytes labelled as another image', { ...bytes, mediaType: 'image/jpeg' }, inline],
    [
      'a YouTube link',
      { kind: 'url', url: 'https://www.youtube.com/watch?v=1' },
      { fileData: { fileUri: 'https://www.youtube.com/watch?v=1' } },
    ],
  ] as const)('media given as %s become one part', (_, media, part) => {
    for (const kind of ['image', 'audio', 'video', 'document'] as const) {
      expect(contents([{ role: 'user', blocks: [{ kind, media }] }])).toEqual([{ role: 'user', parts: [part] }])
    }
  })

  test.each([
    { kind: 'url', url: 'https://example.com/cat.png' },
    { kind: 'url', url: 'http://www.youtube.com/watch?v=1' },
    { kind: 'url', url: 'https://youtube.com.example.com/cat.png' },
    { kind: 'url', url: 'https://example.com/?https://youtu.be/x' },
    { kind: 'file', id: 'file-abc' },
    // The vendor's stored files belong to the operator, and videos of other customers are among them.
    { kind: 'url', url: 'https://generativelanguage.googleapis.com/v1beta/files/abc' },
    { kind: 'file', id: 'files/abc' },
  ] as const)('media that the vendor does not read are a bad request: %j', (media) => {
    const turns: Turn[] = [{ role: 'user', blocks: [{ kind: 'image', media }] }]
    expect(refusal({ turns })).toEqual({ kind: 'bad-request', param: 'messages' })
  })

  test('a document is introduced by its title and context', () => {
    const document = {
      kind: 'document',
      media: { kind: 'text', text: 'Once.' },
      title: 'Tale',
      context: 'old',
    } as const
    expect(contents([{ role: 'user', blocks: [document] }])).toEqual([said('user', 'Tale\nold', 'Once.')])
  })
})

const call = (id: string, name: string, signature?: string) =>
  ({ kind: 'tool-call', id, name, argumentsText: '{"a":1}', ...(signature !== undefined && { signature }) }) as const
const result = (callId: string, words: string, isError = false) =>
  ({ kind: 'tool-result', callId, blocks: text(words), isError }) as const
const called = (id: string, name: string, thoughtSignature?: string) => ({
  functionCall: { id, name, args: { a: 1 } },
  ...(thoughtSignature !== undefined && { thoughtSignature }),
})
const answered = (id: string, name: string, response: JsonObject) => ({ functionResponse: { id, name, response } })

describe('calls and their results', () => {
  test('results carry the names of their functions and stand in one content, in call order', () => {
    const turns: Turn[] = [
      hi,
      { role: 'assistant', blocks: [...text('Wait.'), call('1', 'f'), call('2', 'g')] },
      { role: 'user', blocks: [...text('and?'), result('2', 'b'), result('1', 'a')] },
    ]
    expect(contents(turns)).toEqual([
      said('user', 'Hi'),
      { role: 'model', parts: [{ text: 'Wait.' }, called('1', 'f'), called('2', 'g')] },
      {
        role: 'user',
        parts: [answered('1', 'f', { result: 'a' }), answered('2', 'g', { result: 'b' }), { text: 'and?' }],
      },
    ])
  })

  test('results of a later turn that repeats call ids belong to the calls of that turn', () => {
    const turns: Turn[] = [
      hi,
      { role: 'assistant', blocks: [call('1', 'f'), call('2', 'g')] },
      { role: 'user', blocks: [result('1', 'a'), result('2', 'b')] },
      { role: 'assistant', blocks: [call('1', 'g'), call('2', 'f')] },
      { role: 'user', blocks: [result('2', 'd'), result('1', 'c')] },
    ]
    const parts = [answered('1', 'g', { result: 'c' }), answered('2', 'f', { result: 'd' })]
    expect(contents(turns)).toMatchObject([{}, {}, {}, {}, { parts }])
  })

  test.each([
    ['sunny', false, { result: 'sunny' }],
    ['', false, { result: '' }],
    ['[1]', false, { result: '[1]' }],
    ['{"t":20}', false, { t: 20 }],
    ['{"t":', false, { result: '{"t":' }],
    ['{"id":12345678901234567890}', false, { result: '{"id":12345678901234567890}' }],
    ['{"t":20}', true, { error: '{"t":20}' }],
  ])('the result %j (error: %p) is written as an object', (words, isError, response) => {
    const turns: Turn[] = [
      hi,
      { role: 'assistant', blocks: [call('1', 'f')] },
      { role: 'user', blocks: [result('1', words, isError)] },
    ]
    expect(contents(turns)).toMatchObject([{}, {}, { parts: [answered('1', 'f', response)] }])
  })

  test('numbers that a double cannot hold keep their digits', () => {
    const made = { ...call('1', 'f'), argumentsText: '{"id":12345678901234567890}' }
    const turns: Turn[] = [
      hi,
      { role: 'assistant', blocks: [made] },
      { role: 'user', blocks: [result('1', '{"n":1e400}')] },
    ]
    const text = JSON.stringify(contents(turns))
    expect(text).toContain('"args":{"id":12345678901234567890}')
    expect(text).toContain(JSON.stringify({ result: '{"n":1e400}' }))
  })

  test('an image in a result stands inside it on Gemini 3 and after it on earlier models', () => {
    const blocks = [...text('look'), { kind: 'image', media: bytes }] as const
    const turns: Turn[] = [
      hi,
      { role: 'assistant', blocks: [call('1', 'f')] },
      { role: 'user', blocks: [{ ...result('1', ''), blocks }] },
    ]
    const answer = answered('1', 'f', { result: 'look' })
    const label = { text: 'Attached to the result of f (1):' }
    expect(contents(turns)).toMatchObject([{}, {}, { parts: [answer, label, inline] }])
    const inside = { functionResponse: { ...answer.functionResponse, parts: [inline] } }
    expect(contents(turns, third)).toMatchObject([{}, {}, { parts: [inside] }])
  })

  test('a result without a call is a bad request', () => {
    const turns: Turn[] = [hi, { role: 'user', blocks: [result('9', 'x')] }]
    expect(refusal({ turns })).toEqual({ kind: 'bad-request', param: 'messages' })
  })
})

describe('thought signatures', () => {
  const thinking = { kind: 'thinking', text: 'hm', signature: markGoogle('c2ln') } as const
  test.each([
    ['on the call', [call('1', 'f', markGoogle('c2ln')), call('2', 'g')], ['c2ln', undefined]],
    [
      'on the thinking before the call',
      [thinking, ...text('So.'), call('1', 'f'), call('2', 'g')],
      ['c2ln', undefined],
    ],
    ['on the thinking and the call', [thinking, call('1', 'f', markGoogle('b3Ro'))], ['b3Ro']],
    ['on each call', [call('1', 'f', markGoogle('MQ==')), call('2', 'g', markGoogle('Mg=='))], ['MQ==', 'Mg==']],
  ] as const)('signatures %s are sent back with the calls', (_, blocks, signatures) => {
    for (const target of [second, third]) {
      const [, model] = contents([hi, { role: 'assistant', blocks }], target) as { parts: Record<string, unknown>[] }[]
      const calls = model?.parts.filter((part) => part['functionCall'] !== undefined)
      expect(calls?.map((part) => part['thoughtSignature'])).toEqual([...signatures])
    }
  })

  test('a lost or foreign signature becomes the skip marker on Gemini 3, once per turn', () => {
    const blocks = [{ kind: 'thinking', text: 'hm', signature: 'ErUB' }, call('1', 'f'), call('2', 'g', 'x')] as const
    const turns: Turn[] = [hi, { role: 'assistant', blocks }]
    expect(contents(turns)).toMatchObject([{}, { parts: [called('1', 'f'), called('2', 'g')] }])
    expect(contents(turns, third)).toEqual([
      said('user', 'Hi'),
      { role: 'model', parts: [called('1', 'f', 'skip_thought_signature_validator'), called('2', 'g')] },
    ])
  })
})

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const weather = { name: 'weather', description: 'd', schema, isStrict: true }

describe('tools', () => {
  test('tools are declared with their JSON Schema, or without one if they have no parameters', () => {
    const bare = { name: 'now', schema: { type: 'object', properties: {}, additionalProperties: false } }
    expect(written({ tools: [weather, bare] })).toEqual({
      contents: [said('user', 'Hi')],
      tools: [
        {
          functionDeclarations: [{ name: 'weather', description: 'd', parametersJsonSchema: schema }, { name: 'now' }],
        },
      ],
    })
    expect(written({ tools: [weather] })).not.toHaveProperty('toolConfig')
  })

  test.each([
    ['auto', { mode: 'AUTO' }],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [{ name: 'weather' }, { mode: 'ANY', allowedFunctionNames: ['weather'] }],
  ] as const)('the tool choice %j sets the mode of function calling', (toolChoice, functionCallingConfig) => {
    expect(written({ tools: [weather], toolChoice })['toolConfig']).toEqual({ functionCallingConfig })
    expect(written({ toolChoice })).not.toHaveProperty('toolConfig')
  })

  test('a search that the vendor would run is a bad request that names the field of the client', () => {
    const search = { hostedTools: [{ kind: 'web-search' as const }] }
    expect(refusal(search)).toEqual({ kind: 'bad-request', param: 'web_search_options' })
    expect(refusal(search, { ...second, protocol: 'responses' }).param).toBe('tools')
  })
})

describe('the generation config', () => {
  test('supported parameters are written, and the others are left out', () => {
    const changed = {
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      outputTokensMax: 50,
      stop: ['END', ''],
      seed: 7,
      presencePenalty: 1,
      frequencyPenalty: -1,
      user: 'somebody',
      parallelTools: false,
    }
    const kept = { temperature: 0.5, topP: 0.9, topK: 40, maxOutputTokens: 50, stopSequences: ['END'], seed: 7 }
    expect(config(changed, { ...second, upstreamModel: 'gemini-2.0-flash' })).toEqual({
      ...kept,
      presencePenalty: 1,
      frequencyPenalty: -1,
    })
    for (const topK of [0, -1]) expect(config({ topK }, second)).toEqual(config({}, second))
    // From 2.5 on the vendor refuses penalties.
    for (const target of [second, third, { ...second, upstreamModel: 'gemini-flash-latest' }]) {
      expect(config(changed, target)).toEqual(kept)
    }
  })

  test('the output limit is capped at what the model can produce', () => {
    expect(config({ outputTokensMax: 5_000 })).toEqual({ maxOutputTokens: 1_000 })
  })

  test.each([
    [2 ** 31, -(2 ** 31)],
    [-1, -1],
    [Number.MAX_SAFE_INTEGER, -1],
  ])('the seed %p is folded into 32 bits', (seed, folded) => {
    expect(config({ seed })).toEqual({ seed: folded })
  })

  test.each([
    ['openai', 'stop'],
    ['anthropic', 'stop_sequences'],
  ] as const)('more than five stop sequences are a bad request that names the field of %s', (protocol, param) => {
    const stop = ['a', 'b', 'c', 'd', 'e']
    expect(config({ stop })).toEqual({ stopSequences: stop })
    expect(refusal({ stop: [...stop, 'f'] }, { ...second, protocol })).toEqual({ kind: 'bad-request', param })
  })

  test.each([
    [0, { responseLogprobs: true }],
    [3, { responseLogprobs: true, logprobs: 3 }],
  ])('logprobs with %p alternatives are asked for', (logprobs, asked) => {
    expect(config({ logprobs })).toEqual(asked)
  })

  test('a JSON format sets the media type, and its schema is sent along', () => {
    const responseMimeType = 'application/json'
    expect(config({ format: { kind: 'json' } })).toEqual({ responseMimeType })
    expect(config({ format: { kind: 'schema', name: 'n', schema } })).toEqual({
      responseMimeType,
      responseJsonSchema: schema,
    })
    expect(config({ format: { kind: 'schema', schema: {} } })).toEqual({ responseMimeType })
  })

  test('a format beside tools is an instruction on Gemini 2.5 and a setting on Gemini 3', () => {
    const tools = [{ name: 'read_clock', schema: {} }]
    const format = { kind: 'schema', schema } as const
    const words = 'Answer with JSON of this schema and nothing else: no words around it, no code fence.'
    const told = written({ tools, format, system: text('Be brief.') })
    expect(told['generationConfig']).toBeUndefined()
    expect(told['systemInstruction']).toEqual({
      parts: [{ text: 'Be brief.' }, { text: `${words}\n${JSON.stringify(schema)}` }],
    })
    expect(written({ tools, format: { kind: 'json' } })['systemInstruction']).toEqual({
      parts: [{ text: 'Answer with one JSON object and nothing else: no words around it, no code fence.' }],
    })
    expect(config({ tools, format }, third)).toEqual({
      responseMimeType: 'application/json',
      responseJsonSchema: schema,
    })
  })

  test('a forced tool call drops the format of the answer', () => {
    const tools = [{ name: 'read_clock', schema: {} }]
    for (const toolChoice of ['required', { name: 'read_clock' }] as const) {
      const ask = written({ tools, toolChoice, format: { kind: 'schema', schema } })
      expect(ask['generationConfig']).toBeUndefined()
      expect(ask['systemInstruction']).toBeUndefined()
    }
  })

  test('an effort becomes a budget on Gemini 2.5 and a level on Gemini 3', () => {
    const thinking = { effort: 'high', isShown: true } as const
    expect(config({ thinking })).toEqual({ thinkingConfig: { thinkingBudget: 24_576, includeThoughts: true } })
    expect(config({ thinking }, third)).toEqual({ thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts: true } })
  })
})

test('a history that begins with a call gets a user content before it, and one that begins with text does not', () => {
  const call = { kind: 'tool-call' as const, id: 'c', name: 'f', argumentsText: '{}' }
  const result = { kind: 'tool-result' as const, callId: 'c', blocks: text('ok'), isError: false }
  const turns: Turn[] = [
    { role: 'assistant', blocks: [...text('Wait.'), call] },
    { role: 'user', blocks: [result] },
  ]
  expect(contents(turns)).toMatchObject([said('user', '(The conversation begins with your own words.)'), {}, {}])
  expect(contents([hi, ...turns])).toMatchObject([said('user', 'Hi'), { role: 'model' }, { role: 'user' }])
  expect(contents([assistant('Hello!'), hi])).toEqual([said('model', 'Hello!'), said('user', 'Hi')])
})
