import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { lastCall, openaiClient, thrownBy } from '../support/clients.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'

let gateway: TestGateway
let client: OpenAI

beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
  client = openaiClient(gateway)
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const hello = [{ role: 'user' as const, content: 'Hello!' }]

describe('reasoning models', () => {
  const thinker = 'gpt-5-mini'

  test('fields without effect raise no error and never reach the vendor', async () => {
    const ignored = {
      top_p: 0.5,
      stop: ['x'],
      frequency_penalty: 1,
      presence_penalty: -1,
      logit_bias: { '50256': -100 },
      logprobs: true,
      top_logprobs: 2,
      modalities: ['text' as const],
      prediction: { type: 'content' as const, content: 'x' },
    }
    const completion = await client.chat.completions.create({ model: thinker, messages: hello, ...ignored })
    expect(completion.choices[0]?.message.content).not.toBeEmpty()
    const sent = (await lastCall(gateway)).body
    for (const field of Object.keys(ignored)) expect(sent).not.toHaveProperty(field)
    expect(sent['model']).toBe(thinker)
  })

  test('fields without effect are not checked', async () => {
    const odd = { top_logprobs: 5, top_p: 7, audio: { voice: 'alloy', format: 'wav' as const } }
    const completion = await client.chat.completions.create({ model: thinker, messages: hello, ...odd })
    expect(completion.choices).toHaveLength(1)
  })

  test('a temperature other than the default is refused', async () => {
    const error = await refusedForFree(gateway, () =>
      thrownBy(
        client.chat.completions.create({ model: thinker, messages: hello, temperature: 0.2 }),
        OpenAI.BadRequestError,
      ),
    )
    expect(error).toMatchObject({ param: 'temperature', code: 'unsupported_value' })
    const one = await client.chat.completions.create({ model: thinker, messages: hello, temperature: 1 })
    expect(one.choices).toHaveLength(1)
  })

  test('max_tokens reaches the vendor as max_completion_tokens', async () => {
    await client.chat.completions.create({ model: thinker, messages: hello, max_tokens: 500 })
    const sent = (await lastCall(gateway)).body
    expect(sent).not.toHaveProperty('max_tokens')
    expect(sent['max_completion_tokens']).toBe(500)
  })

  test('a budget used up by thinking is an empty answer that is paid for', async () => {
    const completion = await client.chat.completions.create({
      model: thinker,
      messages: hello,
      max_completion_tokens: 16,
      reasoning_effort: 'high',
    })
    expect(completion.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: '' } })
    expect(completion.usage?.completion_tokens).toBe(16)
    expect(completion.usage?.completion_tokens_details?.reasoning_tokens).toBe(16)
    const record = await recordOf(gateway, completion._request_id ?? '')
    expect(record).toMatchObject({ basis: 'vendor', usage: { output: 16, reasoning: 16 } })
    expect(record.cost).toBeGreaterThan(0n)
  })

  test('an empty answer that was streamed is paid for too', async () => {
    const { data: stream, response } = await client.chat.completions
      .create({ model: thinker, messages: hello, max_completion_tokens: 16, reasoning_effort: 'high', stream: true })
      .withResponse()
    const chunks = await Array.fromAsync(stream)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('')
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('length')
    expect(await recordOf(gateway, response)).toMatchObject({ basis: 'vendor', usage: { output: 16 } })
  })

  test('an effort that the model does not know is refused with the list of those it knows', async () => {
    const error = await refusedForFree(gateway, () =>
      thrownBy(
        client.chat.completions.create({ model: thinker, messages: hello, reasoning_effort: 'xhigh' }),
        OpenAI.BadRequestError,
      ),
    )
    expect(error).toMatchObject({ param: 'reasoning_effort', code: 'unsupported_value' })
    expect(error.message).toContain("'minimal', 'low', 'medium', and 'high'")
    const known = await client.chat.completions.create({ model: thinker, messages: hello, reasoning_effort: 'low' })
    expect(known.usage?.completion_tokens_details?.reasoning_tokens).toBe(16)
  })
})
