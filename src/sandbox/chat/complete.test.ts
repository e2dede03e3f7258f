import { afterAll, describe, expect, test } from 'bun:test'
import { splitTokens } from '../tokens.ts'
import { completionOf, openSandbox } from '../testing.ts'

const { sandbox, say, post } = openSandbox()
afterAll(() => sandbox.stop())

async function textOf(text: string, more: object = {}): Promise<string> {
  const { choices } = await completionOf(say(text, more))
  return choices[0]?.message.content ?? ''
}

describe('a plain answer', () => {
  test('the same request yields the same answer, and another text or seed a different one', async () => {
    const [once, again] = [await completionOf(say('Tell me of Paris')), await completionOf(say('Tell me of Paris'))]
    expect({ ...once, created: 0 }).toEqual({ ...again, created: 0 })
    expect(await textOf('Tell me of Rome')).not.toBe(once.choices[0]?.message.content)
    expect(await textOf('Tell me of Paris', { seed: 7 })).not.toBe(once.choices[0]?.message.content)
  })

  test('the answer quotes the prompt in 20 to 60 tokens, which are counted exactly', async () => {
    const { choices, usage, id, created } = await completionOf(say('Tell me of Paris'))
    const content = choices[0]?.message.content ?? ''
    expect(content).toContain('Tell me of Paris')
    expect(usage.completion_tokens).toBe(splitTokens(content).length)
    expect(usage.completion_tokens).toBeGreaterThanOrEqual(20)
    expect(usage.completion_tokens).toBeLessThanOrEqual(60)
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens)
    expect(id).toStartWith('chatcmpl-')
    expect(Math.abs(created - Date.now() / 1000)).toBeLessThan(5)
  })

  test.each(['max_tokens', 'max_completion_tokens'])('the answer ends at %s', async (name) => {
    const whole = splitTokens(await textOf('Go on'))
    const { choices, usage } = await completionOf(say('Go on', { [name]: 5 }))
    expect(choices[0]).toMatchObject({ finish_reason: 'length', message: { content: whole.slice(0, 5).join('') } })
    expect(usage.completion_tokens).toBe(5)
  })

  test('DashScope applies the smaller of two caps and OpenAI refuses both together', async () => {
    const both = { max_tokens: 300, max_completion_tokens: 5 }
    const { usage } = await completionOf(say('Go on', { model: 'qwen-plus', ...both }, { vendor: 'dashscope' }))
    expect(usage.completion_tokens).toBe(5)
    const refused = await say('Go on', both)
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      error: { param: 'max_tokens', code: 'invalid_parameter_combination' },
    })
  })

  test.each([['string'], ['list']])('the answer ends before a stop sequence given as a %s', async (form) => {
    const whole = await textOf('Go on')
    const stop = whole.slice(30, 34)
    const { choices, usage } = await completionOf(
      say('Go on', { stop: form === 'string' ? stop : ['never there', stop] }),
    )
    const content = whole.slice(0, whole.indexOf(stop))
    expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content } })
    expect(usage.completion_tokens).toBe(splitTokens(content).length)
  })

  test('n choices are all different', async () => {
    const { choices } = await completionOf(say('Go on', { n: 3 }))
    expect(choices.map((choice) => choice.index)).toEqual([0, 1, 2])
    expect(new Set(choices.map((choice) => choice.message.content)).size).toBe(3)
  })

  test('verbosity changes the length of the answer', async () => {
    const [low, medium, high] = [
      await textOf('Go on', { verbosity: 'low' }),
      await textOf('Go on'),
      await textOf('Go on', { verbosity: 'high' }),
    ]
    expect(low.length).toBeLessThan(medium.length)
    expect(medium.length).toBeLessThan(high.length)
  })

  test('logprobs cover every token', async () => {
    const { choices, usage } = await completionOf(say('Go on', { logprobs: true, top_logprobs: 2 }))
    const tokens = choices[0]?.logprobs?.content ?? []
    expect(tokens.length).toBe(usage.completion_tokens)
    expect(tokens.map((token) => token.token).join('')).toBe(choices[0]?.message.content ?? '')
    expect(tokens[0]?.top_logprobs.length).toBe(2)
    expect(tokens.every((token) => token.logprob <= 0)).toBe(true)
  })

  test('json_object yields a JSON object', async () => {
    const text = await textOf('Answer in JSON', { response_format: { type: 'json_object' } })
    expect(JSON.parse(text)).toMatchObject({ answer: expect.any(String) })
  })

  test('json_schema yields an instance of the schema', async () => {
    const schema = {
      type: 'object',
      properties: {
        city: { type: 'string' },
        people: { type: 'integer', minimum: 1 },
        kind: { enum: ['town', 'city'] },
      },
      required: ['city', 'people', 'kind'],
      additionalProperties: false,
    }
    const response_format = { type: 'json_schema', json_schema: { name: 'place', strict: true, schema } }
    const place: unknown = JSON.parse(await textOf('Go on', { response_format }))
    expect(place).toEqual({
      city: expect.any(String),
      people: expect.any(Number),
      kind: expect.stringMatching(/town|city/),
    })
    const cut = await completionOf(say('Go on', { response_format, max_tokens: 3 }))
    expect(cut.choices[0]?.finish_reason).toBe('length')
  })

  test('a quotation never splits a character', async () => {
    const text = await textOf(`${'x'.repeat(47)}🚀🚀\ud800`)
    expect(text.isWellFormed()).toBe(true)
    expect(text).toContain('x🚀')
  })
})

describe('the prompt', () => {
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(5_000)}` } }

  test.each([
    ['the text and the frame of a message', [{ role: 'user', content: 'Say it' }], 5],
    [
      'every message',
      [
        { role: 'system', content: 'Be kind' },
        { role: 'user', content: [{ type: 'text', text: 'Say it' }] },
      ],
      10,
    ],
    ['85 tokens for an image of any size', [{ role: 'user', content: [image] }], 88],
  ])('the prompt tokens count %s', async (_, messages, tokens) => {
    const { usage } = await completionOf(post({ model: 'plain', messages }))
    expect(usage.prompt_tokens).toBe(tokens)
  })

  test('the prompt tokens count the tools', async () => {
    const tools = [{ type: 'function', function: { name: 'f' } }]
    const { usage } = await completionOf(say('Say it', { tools }))
    expect(usage.prompt_tokens).toBe(5 + splitTokens(JSON.stringify(tools)).length)
  })

  // 1e20 is four bytes in the request and twenty-one when written out.
  test('the prompt tokens never exceed the bytes of the request', async () => {
    const tools = Array.from({ length: 40 }, () => '1e20').join(',')
    const body = `{"model":"plain","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"enum":[${tools}]}}}]}`
    const { usage } = await completionOf(post(body))
    expect(usage.prompt_tokens).toBe(body.length)
  })
})

describe('reasoning', () => {
  test.each([
    ['thinker', undefined, 64],
    ['thinker', 'minimal', 8],
    ['thinker', 'low', 16],
    ['thinker', 'high', 128],
    ['optional-thinker', undefined, 0],
    ['optional-thinker', 'none', 0],
    ['optional-thinker', 'xhigh', 256],
    ['optional-thinker', 'max', 512],
  ])('the reasoning of %s at %s is hidden and takes %d tokens', async (model, effort, tokens) => {
    const { choices, usage } = await completionOf(say('Think', { model, reasoning_effort: effort }))
    const message = choices[0]?.message
    expect(message).not.toHaveProperty('reasoning_content')
    expect(usage.completion_tokens_details.reasoning_tokens).toBe(tokens)
    expect(usage.completion_tokens).toBe(tokens + splitTokens(message?.content ?? '').length)
  })

  test('reasoning may use the whole token budget', async () => {
    const { choices, usage } = await completionOf(say('Think', { model: 'thinker', max_completion_tokens: 64 }))
    expect(choices[0]).toMatchObject({ finish_reason: 'length', message: { content: '' } })
    expect([usage.completion_tokens, usage.completion_tokens_details.reasoning_tokens]).toEqual([64, 64])
  })

  test.each([
    ['deepseek', { max_tokens: 10 }, 10],
    ['dashscope', { max_tokens: 10, enable_thinking: true }, 64 + 10],
    ['dashscope', { max_completion_tokens: 10, enable_thinking: true }, 10],
    ['ark', { max_tokens: 10 }, 64 + 10],
    ['ark', { max_completion_tokens: 10 }, 10],
  ])('the output of %s is capped as the vendor reads %j', async (vendor, more, tokens) => {
    const model = { deepseek: 'reasoner', dashscope: 'qwen-plus', ark: 'doubao' }[vendor]
    const { usage } = await completionOf(say('Think', { model, ...more }, { vendor }))
    expect(usage.completion_tokens).toBe(tokens)
  })

  test.each([
    ['deepseek', 'reasoner', {}, 64],
    ['deepseek', 'reasoner', { thinking: { type: 'disabled' } }, 0],
    ['dashscope', 'qwen-plus', {}, 0],
    ['dashscope', 'qwen-plus', { enable_thinking: true }, 64],
    ['dashscope', 'qwen-plus', { enable_thinking: true, thinking_budget: 10 }, 10],
    ['ark', 'doubao', {}, 64],
    ['ark', 'doubao', { reasoning_effort: 'high', thinking: { type: 'enabled' } }, 128],
    ['ark', 'doubao', { thinking: { type: 'disabled' } }, 0],
  ])('the reasoning of %s %s with %j is shown in full', async (vendor, model, more, tokens) => {
    const { choices, usage } = await completionOf(say('Think', { model, ...more }, { vendor }))
    expect(usage.completion_tokens_details.reasoning_tokens).toBe(tokens)
    expect(splitTokens(choices[0]?.message.reasoning_content ?? '').length).toBe(tokens)
  })
})
