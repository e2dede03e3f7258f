import { afterAll, describe, expect, test } from 'bun:test'
import {
  type Answer,
  answerOf,
  callsOf,
  errorOf,
  finishOf,
  openGemini,
  type Part,
  textOf,
  thirdModel,
  user,
} from './testing.ts'

const { sandbox, say, post } = openGemini()
afterAll(() => sandbox.stop())

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const weather = { name: 'get_weather', parameters }
const stocks = { name: 'lookUpStocks', parametersJsonSchema: { ...parameters, additionalProperties: false } }
const tools = [{ functionDeclarations: [weather, stocks] }]
const mode = (name: string, ...allowedFunctionNames: string[]) => ({
  toolConfig: {
    functionCallingConfig: { mode: name, ...(allowedFunctionNames.length > 0 && { allowedFunctionNames }) },
  },
})

const namesOf = (answer: Answer) => callsOf(answer).map((part) => part.functionCall?.name ?? '')

describe('the functions called', () => {
  test.each([
    ['no function that the text does not name', 'Hello there', {}, []],
    ['the function whose word is in the text', 'How is the WEATHER?', {}, ['get_weather']],
    ['several functions side by side', 'weather and stocks', mode('AUTO'), ['get_weather', 'lookUpStocks']],
    ['the function that the text names in the mode VALIDATED', 'stocks', mode('VALIDATED'), ['lookUpStocks']],
    ['only allowed functions in the mode VALIDATED', 'weather', mode('VALIDATED', 'lookUpStocks'), []],
    ['no function in the mode NONE', 'weather', mode('NONE'), []],
    ['the first function in the mode ANY', 'Hello', mode('ANY'), ['get_weather']],
    ['the function that the text names in the mode ANY', 'stocks', mode('ANY'), ['lookUpStocks']],
    ['the only allowed function in the mode ANY', 'weather', mode('ANY', 'lookUpStocks'), ['lookUpStocks']],
    ['the function of a steering word', 'Hello sandbox:tool=lookUpStocks', {}, ['lookUpStocks']],
  ])('the model calls %s', async (_, text, more, names) => {
    const answer = await answerOf(say(text, { tools, ...more }))
    expect([namesOf(answer), finishOf(answer)]).toEqual([names, 'STOP'])
    for (const { functionCall } of callsOf(answer)) expect(functionCall?.args).toEqual({ city: expect.any(String) })
  })

  test('a call cut off by the token cap is dropped and still counted', async () => {
    const answer = await answerOf(say('weather', { tools, generationConfig: { maxOutputTokens: 4 } }))
    expect([namesOf(answer), finishOf(answer)]).toEqual([[], 'MAX_TOKENS'])
    expect(answer.usageMetadata.candidatesTokenCount).toBe(4)
  })
})

/** The conversation after the model's call was answered. */
function replay(call: Part, ...answers: { name: string; response: unknown }[]): object {
  return {
    contents: [
      user('weather'),
      { role: 'model', parts: [call] },
      { role: 'user', parts: answers.map((functionResponse) => ({ functionResponse })) },
    ],
    tools,
  }
}

const result = { name: 'get_weather', response: { result: 'sunny' } }

async function callBy(model: string): Promise<Part> {
  const [call] = callsOf(await answerOf(say('weather', { tools }, { model })))
  if (!call) throw new Error('no call')
  return call
}

describe('the result of a function', () => {
  test('a result is answered in text, even when a function call is required', async () => {
    const call = await callBy('gemini-2.5-flash')
    const answer = await answerOf(post({ ...replay(call, result), ...mode('ANY') }))
    expect([namesOf(answer), textOf(answer)]).toEqual([[], expect.stringContaining('weather')])
  })

  test.each([
    ['is missing', [], 'contents.parts must not be empty'],
    ['is given twice', [result, result], 'number of function response parts'],
    ['has another name', [{ ...result, name: 'call_1' }], 'does not answer any function call'],
    ['has no name', [{ ...result, name: '' }], 'Name cannot be empty'],
    ['is not an object', [{ ...result, response: 'sunny' }], 'google.protobuf.Struct'],
  ])('a result that %s is refused with a 400', async (_, answers, message) => {
    const call = await callBy('gemini-2.5-flash')
    const error = await errorOf(post(replay(call, ...answers)))
    expect(error).toMatchObject({ http: 400, message: expect.stringContaining(message) })
  })

  test('a result without a call and a call without a result are refused', async () => {
    const { functionCall } = await callBy('gemini-2.0-flash')
    const call = { role: 'model', parts: [{ functionCall }] }
    const answer = { role: 'user', parts: [{ functionResponse: result }] }
    for (const [contents, message] of [
      [[user('hi'), answer], 'immediately after a function call turn'],
      [[user('hi'), call], 'number of function response parts'],
      [[user('hi'), call, user('well?')], 'number of function response parts'],
      [[{ role: 'user', parts: call.parts }], 'comes immediately after a user turn'],
      [[call, answer], 'comes immediately after a user turn'],
    ] as const) {
      expect((await errorOf(post({ contents }))).message).toContain(message)
    }
  })
})

describe('a thought signature', () => {
  test('the signature comes with the first of several calls', async () => {
    const calls = callsOf(await answerOf(say('weather and stocks', { tools }, { model: thirdModel })))
    expect(calls.map((part) => typeof part.thoughtSignature)).toEqual(['string', 'undefined'])
    expect((await callBy('gemini-2.0-flash')).thoughtSignature).toBeUndefined()
    expect((await callBy('gemini-2.5-pro')).thoughtSignature).toEqual(expect.any(String))
  })

  test('a Gemini 3 model accepts its signature whatever the order of the arguments', async () => {
    const properties = { city: { type: 'string' }, days: { type: 'integer' } }
    const wide = [{ functionDeclarations: [{ name: 'get_weather', parameters: { type: 'object', properties } }] }]
    const [call] = callsOf(await answerOf(say('weather', { tools: wide }, { model: thirdModel })))
    const { city, days } = call?.functionCall?.args ?? {}
    const reordered = { ...call, functionCall: { name: 'get_weather', args: { days, city } } }
    expect((await post(replay(reordered, result), { model: thirdModel })).status).toBe(200)
  })

  test.each([
    ['is missing', (call: Part) => ({ ...call, thoughtSignature: undefined }), 'missing a thought_signature'],
    [
      'was changed',
      (call: Part) => ({ ...call, thoughtSignature: `AAAA${call.thoughtSignature?.slice(4)}` }),
      'Corrupted thought signature',
    ],
    [
      'belongs to other arguments',
      (call: Part) => ({ ...call, functionCall: { name: 'get_weather', args: { city: 'Nowhere' } } }),
      'Corrupted thought signature',
    ],
    ['is not base64', (call: Part) => ({ ...call, thoughtSignature: 'no, really' }), 'Base64 decoding failed'],
  ])('a Gemini 3 model refuses a signature that %s', async (_, change, message) => {
    const call = change(await callBy(thirdModel))
    const error = await errorOf(post(replay(call, result), { model: thirdModel }))
    expect(error).toMatchObject({
      http: 400,
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining(message),
    })
  })

  test('a signature may be missing before Gemini 3 and in completed turns', async () => {
    const { functionCall } = await callBy(thirdModel)
    expect((await post(replay({ functionCall }, result), { model: 'gemini-2.5-pro' })).status).toBe(200)
    const past = [
      user('weather'),
      { role: 'model', parts: [{ functionCall }] },
      { role: 'user', parts: [{ functionResponse: result }] },
      { role: 'model', parts: [{ text: 'Sunny.' }] },
      user('thanks'),
    ]
    expect((await post({ contents: past, tools }, { model: thirdModel })).status).toBe(200)
  })

  test('the signature that skips validation and one on an empty text are accepted', async () => {
    const { functionCall } = await callBy(thirdModel)
    const skipping = { functionCall, thoughtSignature: 'skip_thought_signature_validator' }
    expect((await post(replay(skipping, result), { model: thirdModel })).status).toBe(200)
    const { candidates } = await answerOf(say('hello', {}, { model: thirdModel }))
    const signature = candidates?.[0]?.content?.parts?.[0]?.thoughtSignature
    const parts = [{ text: 'Hello.' }, { text: '', thoughtSignature: signature }]
    const contents = [user('hello'), { role: 'model', parts }, user('again')]
    expect((await post({ contents }, { model: thirdModel })).status).toBe(200)
  })
})
