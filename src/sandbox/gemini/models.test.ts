import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { answerOf, errorOf, openGemini, user } from './testing.ts'

const { sandbox, root, say, post, bill, clearBill } = openGemini()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const headers = { 'x-goog-api-key': 'vendor-key' }
type Page = { models: { name: string; inputTokenLimit: number }[]; nextPageToken?: string }

async function page(query = ''): Promise<Page> {
  const found: Page = await (await fetch(`${root}/models${query}`, { headers })).json()
  return found
}

describe('the models', () => {
  test('the models are listed in pages', async () => {
    const all = await page()
    expect(all.models.length).toBe(5)
    expect(all).not.toHaveProperty('nextPageToken')
    expect(all.models[0]).toMatchObject({
      name: 'models/gemini-2.5-pro',
      inputTokenLimit: 100_000,
      outputTokenLimit: 4_096,
      supportedGenerationMethods: ['generateContent', 'countTokens'],
    })
    const names: string[] = []
    for (let token: string | undefined = ''; token !== undefined;) {
      const part: Page = await page(`?pageSize=2&pageToken=${token}`)
      names.push(...part.models.map(({ name }) => name))
      token = part.nextPageToken
    }
    expect(names).toEqual(all.models.map(({ name }) => name))
  })

  test('a missing key, a bad page token and an unknown model are refused', async () => {
    expect(await errorOf(fetch(`${root}/models`))).toMatchObject({ http: 403 })
    expect(await errorOf(fetch(`${root}/models?pageToken=nonsense`, { headers }))).toMatchObject({ http: 400 })
    expect(await errorOf(fetch(`${root}/models/gemini-9`, { headers }))).toMatchObject({
      http: 404,
      status: 'NOT_FOUND',
    })
    expect(await (await fetch(`${root}/models/gemini-2.5-pro`, { headers })).json()).toMatchObject({ thinking: true })
  })

  test('the OpenAI-compatible protocol is served under its own path', async () => {
    const response = await fetch(`${root}/openai/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer vendor-key' },
      body: JSON.stringify({ model: 'gemini-2.5-flash', messages: [{ role: 'user', content: 'hello' }] }),
    })
    expect(await response.json()).toMatchObject({ object: 'chat.completion', model: 'gemini-2.5-flash' })
  })
})

describe('counting tokens', () => {
  const method = 'countTokens'
  type Count = { totalTokens: number; promptTokensDetails: { modality: string; tokenCount: number }[] }

  test('the count equals the billed prompt tokens and is free', async () => {
    const request = { contents: [user('hello there')], systemInstruction: { parts: [{ text: 'Be brief.' }] } }
    const whole = { generateContentRequest: { model: 'models/gemini-2.0-flash', ...request } }
    const bare: Count = await (await post({ contents: request.contents }, { method })).json()
    const counted: Count = await (await post(whole, { method, ref: 'count-1' })).json()
    const { usageMetadata } = await answerOf(post(request))
    expect(counted.totalTokens).toBe(usageMetadata.promptTokenCount)
    expect(counted.promptTokensDetails).toEqual(usageMetadata.promptTokensDetails)
    expect(bare.totalTokens).toBeLessThan(counted.totalTokens)
    expect((await bill())[1]).toMatchObject({ ref: 'count-1', status: 200, cost: '0', units: { input: 0 } })
  })

  test('a count is validated as strictly as a request and can be steered to fail', async () => {
    const system = { systemInstruction: { parts: [{ text: 'x' }] } }
    expect((await errorOf(say('hi', system, { method }))).message).toContain('Unknown name "systemInstruction"')
    expect(await errorOf(post({ contents: [] }, { method }))).toMatchObject({ http: 400 })
    expect(await errorOf(say('sandbox:status=503', {}, { method }))).toMatchObject({ http: 503 })
    expect(await errorOf(say('hi', {}, { method, model: 'gemini-9' }))).toMatchObject({ http: 404 })
  })
})
