import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { splitTokens } from '../tokens.ts'
import { answerOf, errorOf, finishOf, openGemini, partsOf, textOf, user } from './testing.ts'

const { sandbox, root, say, post, bill, clearBill } = openGemini()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const config = (generationConfig: object): object => ({ generationConfig })
const pro = { model: 'gemini-2.5-pro' }
const flash = { model: 'gemini-2.5-flash' }

describe('an answer', () => {
  test("an answer has the vendor's shape and is billed by its reported usage", async () => {
    const answer = await answerOf(say('Which road leads north?', {}, { ref: 'attempt-1' }))
    expect(answer).toMatchObject({
      candidates: [{ content: { role: 'model' }, finishReason: 'STOP', index: 0 }],
      modelVersion: 'gemini-2.0-flash',
      responseId: expect.stringMatching(/^\w{24}$/),
    })
    expect(textOf(answer)).toContain('Which road leads north?')
    const { promptTokenCount, candidatesTokenCount = 0, totalTokenCount, promptTokensDetails } = answer.usageMetadata
    expect(candidatesTokenCount).toBe(splitTokens(textOf(answer)).length)
    expect(totalTokenCount).toBe(promptTokenCount + candidatesTokenCount)
    expect(promptTokensDetails).toEqual([{ modality: 'TEXT', tokenCount: promptTokenCount }])
    const cost = (promptTokenCount * 2 + candidatesTokenCount * 10) / 1e9
    expect(await bill()).toEqual([
      {
        ref: 'attempt-1',
        model: 'gemini-2.0-flash',
        status: 200,
        units: { input: promptTokenCount, cachedInput: 0, output: candidatesTokenCount, reasoning: 0 },
        cost: cost.toFixed(9).replace(/0+$/, ''),
      },
    ])
  })

  test('the answer depends only on the request and its seed', async () => {
    const first = await (await say('hello')).text()
    expect(await (await say('hello')).text()).toBe(first)
    expect(textOf(await answerOf(say('hello', config({ seed: 7 }))))).not.toBe(textOf(JSON.parse(first)))
  })

  test('snake-case fields, numbers as strings and single elements for lists are accepted', async () => {
    const body = { contents: { parts: { text: 'hello' } }, generation_config: { max_output_tokens: '5' } }
    const answer = await answerOf(post(body))
    expect([answer.usageMetadata.candidatesTokenCount, finishOf(answer)]).toEqual([5, 'MAX_TOKENS'])
  })

  test('the key is accepted in the query string', async () => {
    const body = JSON.stringify({ contents: [user('hello')] })
    const address = `${root}/models/gemini-2.0-flash:generateContent?key=k`
    expect((await fetch(address, { method: 'POST', body })).status).toBe(200)
  })

  test('the answer ends before a stop sequence', async () => {
    const whole = textOf(await answerOf(say('hello')))
    const stop = whole.split(' ')[3] ?? ''
    const answer = await answerOf(say('hello', config({ stopSequences: ['never said', stop] })))
    expect([textOf(answer), finishOf(answer)]).toEqual([whole.slice(0, whole.indexOf(stop)), 'STOP'])
  })

  test('several candidates differ and are counted together', async () => {
    const { candidates = [], usageMetadata } = await answerOf(say('hello', config({ candidateCount: 3 })))
    expect(candidates.map(({ index }) => index)).toEqual([0, 1, 2])
    const texts = candidates.map(({ content }) => content?.parts?.[0]?.text ?? '')
    expect(new Set(texts).size).toBe(3)
    const tokens = texts.reduce((sum, text) => sum + splitTokens(text).length, 0)
    expect(usageMetadata.candidatesTokenCount).toBe(tokens)
  })

  test('logprobs cover every token', async () => {
    const answer = await answerOf(say('hello', config({ responseLogprobs: true, logprobs: 2 })))
    const { logprobsResult } = answer.candidates?.[0] ?? {}
    expect(logprobsResult?.chosenCandidates.map(({ token }) => token).join('')).toBe(textOf(answer))
    expect(logprobsResult?.topCandidates?.[0]).toEqual({ candidates: [expect.anything(), expect.anything()] })
  })

  test('prompt tokens are counted and billed by modality', async () => {
    const parts = [
      { text: 'What is this?' },
      { inlineData: { mimeType: 'image/png', data: 'aGVsbG8=' } },
      { inlineData: { mimeType: 'audio/wav', data: 'aGVsbG8=' } },
      {
        fileData: { mimeType: 'image/png', fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/abc' },
      },
    ]
    const { usageMetadata } = await answerOf(post({ contents: [{ role: 'user', parts }] }))
    expect(usageMetadata.promptTokensDetails).toEqual([
      { modality: 'TEXT', tokenCount: usageMetadata.promptTokenCount - 3 * 258 },
      { modality: 'IMAGE', tokenCount: 516 },
      { modality: 'AUDIO', tokenCount: 258 },
    ])
    const [line] = await bill()
    expect(line?.units).toMatchObject({ input: usageMetadata.promptTokenCount - 258, audioInput: 258 })
  })

  test('a repeated long prompt is read from the cache of its key and billed as cached', async () => {
    const long = `${'a long story '.repeat(1_000)} sandbox:tokens=0`
    const ask = async (key: string) => (await answerOf(say(long, {}, { key }))).usageMetadata
    const first = await ask('one')
    const second = await ask('one')
    expect(first).not.toHaveProperty('cachedContentTokenCount')
    expect(second.promptTokenCount).toBe(first.promptTokenCount)
    const cached = second.cachedContentTokenCount ?? 0
    expect(cached).toBeGreaterThanOrEqual(1_024)
    expect(await ask('two')).not.toHaveProperty('cachedContentTokenCount')
    const [, line] = await bill()
    expect(line?.units).toMatchObject({ input: second.promptTokenCount - cached, cachedInput: cached })
  })
})

describe('thinking', () => {
  test('thinking is counted beside the answer and shown on request', async () => {
    const hidden = await answerOf(say('hello', {}, pro))
    expect(partsOf(hidden).every((part) => part.thought === undefined)).toBe(true)
    expect(hidden.usageMetadata).toMatchObject({
      thoughtsTokenCount: 64,
      candidatesTokenCount: splitTokens(textOf(hidden)).length,
    })
    const shown = await answerOf(say('hello', config({ thinkingConfig: { includeThoughts: true } }), pro))
    const [thought] = partsOf(shown)
    expect([thought?.thought, splitTokens(thought?.text ?? '').length]).toEqual([true, 64])
    const { promptTokenCount, candidatesTokenCount = 0, totalTokenCount } = shown.usageMetadata
    expect(totalTokenCount).toBe(promptTokenCount + candidatesTokenCount + 64)
    expect((await bill())[1]?.units).toMatchObject({ output: candidatesTokenCount + 64, reasoning: 64 })
  })

  test.each([
    ['a small budget', 'gemini-2.5-flash', { thinkingBudget: 10 }, 10],
    ['a low budget', 'gemini-2.5-flash', { thinkingBudget: 1_024 }, 16],
    ['a middle budget', 'gemini-2.5-flash', { thinkingBudget: 8_192 }, 64],
    ['a high budget', 'gemini-2.5-flash', { thinkingBudget: 24_576 }, 128],
    ['a dynamic budget', 'gemini-2.5-pro', { thinkingBudget: -1 }, 64],
    ['a budget of zero', 'gemini-2.5-flash', { thinkingBudget: 0 }, undefined],
    ['the default of the small model', 'gemini-2.5-flash-lite', {}, undefined],
    ['the default of the third generation', 'gemini-3-pro-preview', {}, 128],
    ['a level', 'gemini-3-pro-preview', { thinkingLevel: 'low' }, 16],
    ['a budget for the third generation', 'gemini-3-pro-preview', { thinkingBudget: 1_024 }, 16],
  ])('the number of thinking tokens follows %s', async (_, model, thinkingConfig, tokens) => {
    const { usageMetadata } = await answerOf(say('hello', config({ thinkingConfig }), { model }))
    expect(usageMetadata.thoughtsTokenCount).toBe(tokens)
  })

  test('thinking counts towards the cap, and an answer without parts is still billed', async () => {
    const answer = await answerOf(say('hello', config({ maxOutputTokens: 20 }), flash))
    expect(answer.candidates).toEqual([{ content: { role: 'model' }, finishReason: 'MAX_TOKENS', index: 0 }])
    expect(answer.usageMetadata.thoughtsTokenCount).toBe(20)
    expect(answer.usageMetadata).not.toHaveProperty('candidatesTokenCount')
    expect((await bill())[0]?.units).toMatchObject({ output: 20, reasoning: 20 })
  })

  test.each([
    ['gemini-2.5-pro', { thinkingBudget: 0 }, 'only works in thinking mode'],
    ['gemini-2.5-pro', { thinkingBudget: 127 }, 'between 128 and 32768'],
    ['gemini-2.5-pro', { thinkingBudget: 32_769 }, 'between 128 and 32768'],
    ['gemini-2.5-flash', { thinkingBudget: 24_577 }, 'between 0 and 24576'],
    ['gemini-2.5-pro', { thinkingLevel: 'LOW' }, 'Thinking level is not supported'],
    ['gemini-3-pro-preview', { thinkingLevel: 'MEDIUM' }, 'Thinking level MEDIUM is not supported'],
    ['gemini-3-pro-preview', { thinkingLevel: 'LOW', thinkingBudget: 512 }, 'only one of thinking budget'],
    ['gemini-3-pro-preview', { thinkingBudget: 0 }, 'only works in thinking mode'],
    ['gemini-2.0-flash', { includeThoughts: true }, 'not supported'],
  ])('%s refuses %p', async (model, thinkingConfig, message) => {
    const error = await errorOf(say('hello', config({ thinkingConfig }), { model }))
    expect(error).toMatchObject({
      http: 400,
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining(message),
    })
  })
})

describe('a structured answer', () => {
  const json = { responseMimeType: 'application/json' }

  test('JSON without a schema yields an object', async () => {
    expect(JSON.parse(textOf(await answerOf(say('hello', config(json)))))).toMatchObject({ sandbox: true })
  })

  test('a schema yields an instance with its properties in the requested order', async () => {
    const responseSchema = {
      type: 'OBJECT',
      properties: {
        unit: { type: 'STRING', enum: ['C', 'F'] },
        days: { type: 'ARRAY', items: { type: 'INTEGER', minimum: 3, maximum: 5 }, minItems: '3', maxItems: '3' },
      },
      required: ['unit', 'days'],
      propertyOrdering: ['days', 'unit'],
    }
    const made = JSON.parse(textOf(await answerOf(say('hello', config({ ...json, responseSchema })))))
    expect(Object.keys(made)).toEqual(['days', 'unit'])
    expect(made.unit).toMatch(/^[CF]$/)
    expect(made.days).toHaveLength(3)
    for (const day of made.days) expect([3, 4, 5]).toContain(day)
  })

  test('responseJsonSchema accepts JSON Schema keywords', async () => {
    const responseJsonSchema = {
      type: 'object',
      properties: { kind: { const: 'road' }, note: { $ref: '#/$defs/note' } },
      required: ['kind', 'note'],
      additionalProperties: false,
      $defs: { note: { type: ['string', 'null'] } },
    }
    const made = JSON.parse(textOf(await answerOf(say('hello', config({ ...json, responseJsonSchema })))))
    expect(made).toEqual({ kind: 'road', note: expect.any(String) })
  })

  test('text/x.enum yields a bare value of the enum', async () => {
    const asked = { responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING', enum: ['yes', 'no'] } }
    expect(textOf(await answerOf(say('hello', config(asked))))).toMatch(/^(yes|no)$/)
  })
})
