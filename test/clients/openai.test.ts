import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { formatDollars } from '../../src/base/money.ts'
import { openaiClient, thrownBy } from '../support/clients.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { lastRequestOf, recordOf, untilVendorStopped } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'

const clock = movableClock()
let gateway: TestGateway
let client: OpenAI
/** Requests that the client library made, retries included. */
let tries = 0

function clientWith(apiKey: string): OpenAI {
  return new OpenAI({
    apiKey,
    baseURL: `${gateway.url}/v1`,
    fetch(url, init) {
      tries++
      return fetch(url, init)
    },
  })
}

beforeAll(async () => {
  gateway = await startTestGateway({ clock, mode: 'leased' })
  client = clientWith(gateway.key)
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const model = 'gpt-4o-mini'
const hello = [{ role: 'user' as const, content: 'Hello!' }]
const user = (content: string) => [{ role: 'user' as const, content }]

describe('answers', () => {
  test('a plain chat is answered, and its usage is on record', async () => {
    const completion = await client.chat.completions.create({ model, messages: hello })
    expect(completion.choices[0]?.message.content).toContain('Hello!')
    expect(completion.choices[0]?.finish_reason).toBe('stop')
    expect(completion.model).toBe(model)
    expect(completion._request_id).toStartWith('req_')
    const record = await recordOf(gateway, completion._request_id ?? '')
    expect(record).toMatchObject({ status: 200, basis: 'vendor', streamed: false, model })
    expect(record.usage).toMatchObject({
      input: completion.usage?.prompt_tokens ?? -1,
      output: completion.usage?.completion_tokens ?? -1,
    })
  })

  test('the cost in the header is what the account was charged', async () => {
    const before = await gateway.balance()
    const { data, response } = await client.chat.completions.create({ model, messages: hello }).withResponse()
    const after = await gateway.balance()
    expect(data.usage?.total_tokens).toBeGreaterThan(0)
    const cost = (before.posted - after.posted) as typeof before.posted
    expect(cost).toBeGreaterThan(0n)
    expect(response.headers.get('x-turnpike-cost')).toBe(formatDollars(cost))
  })

  test('a dated id of the vendor is shown as the id that was asked for', async () => {
    const completion = await client.chat.completions.create({ model, messages: user('Hi sandbox:dated') })
    expect(completion.model).toBe(model)
  })

  test('several choices are returned, and all are charged', async () => {
    const completion = await client.chat.completions.create({ model, messages: hello, n: 2 })
    expect(completion.choices.map(({ index }) => index)).toEqual([0, 1])
    const record = await recordOf(gateway, completion._request_id ?? '')
    expect(record.usage).toMatchObject({ output: completion.usage?.completion_tokens ?? -1 })
  })

  test('structured output comes back parsed', async () => {
    const place = z.object({ city: z.string(), population: z.number(), rivers: z.array(z.string()) })
    const completion = await client.chat.completions.parse({
      model,
      messages: user('Name a city.'),
      response_format: zodResponseFormat(place, 'place'),
    })
    const parsed = completion.choices[0]?.message.parsed
    expect(place.safeParse(parsed).success).toBe(true)
  })

  test('a JSON object is returned if asked for', async () => {
    const completion = await client.chat.completions.create({
      model,
      messages: user('Answer in JSON.'),
      response_format: { type: 'json_object' },
    })
    expect(JSON.parse(completion.choices[0]?.message.content ?? '')).toBeObject()
  })
})

describe('streams', () => {
  test('a stream shows no usage if not asked for, and is charged all the same', async () => {
    const { data: stream, response } = await client.chat.completions
      .create({ model, messages: hello, stream: true })
      .withResponse()
    let text = ''
    let finish: string | null = null
    for await (const chunk of stream) {
      expect(chunk.usage ?? null).toBeNull()
      expect(chunk.choices).toHaveLength(1)
      expect(chunk.model).toBe(model)
      text += chunk.choices[0]?.delta.content ?? ''
      finish = chunk.choices[0]?.finish_reason ?? finish
    }
    expect(text).toContain('Hello!')
    expect(finish).toBe('stop')
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ status: 200, basis: 'vendor', streamed: true })
    expect(record.cost).toBeGreaterThan(0n)
  })

  test('a stream with usage has it in a last chunk without choices', async () => {
    const { data: stream, response } = await client.chat.completions
      .create({ model, messages: hello, stream: true, stream_options: { include_usage: true } })
      .withResponse()
    const chunks = await Array.fromAsync(stream)
    const last = chunks.pop()
    expect(last?.choices).toEqual([])
    expect(chunks.every((chunk) => chunk.usage === null && chunk.choices.length === 1)).toBe(true)
    const record = await recordOf(gateway, response)
    expect(record.usage).toMatchObject({
      input: last?.usage?.prompt_tokens ?? -1,
      output: last?.usage?.completion_tokens ?? -1,
    })
  })

  test('a stream has the same text as a whole answer', async () => {
    const whole = await client.chat.completions.create({ model, messages: user('Count the apples.') })
    const stream = client.chat.completions.stream({ model, messages: user('Count the apples.') })
    const streamed = await stream.finalChatCompletion()
    expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content ?? '')
  })

  test('a client that leaves midway ends the call at the vendor and is charged for what it read', async () => {
    const { id, key } = await gateway.account({ dollars: '10' })
    const stream = await clientWith(key).chat.completions.create({
      model,
      messages: user('Tell me a story. sandbox:endless sandbox:pace=5'),
      stream: true,
    })
    let chunks = 0
    for await (const _ of stream) if (++chunks === 4) break
    await until(async () => (await lastRequestOf(gateway, id)) !== undefined)
    const record = await lastRequestOf(gateway, id)
    expect(record).toMatchObject({ status: 499, basis: 'estimated' })
    await untilVendorStopped(gateway, record?.id ?? '')
    expect(record?.cost).toBeGreaterThan(0n)
    // The hold covers 16,384 tokens at 0.6 micro-dollars; only a few were read.
    expect(record?.cost).toBeLessThan(1_000_000n)
  })

  test('an error midway is thrown and not mistaken for the end', async () => {
    const stream = await client.chat.completions.create({
      model,
      messages: user('Hi sandbox:midstream-error'),
      stream: true,
    })
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const chunk of stream) seen.push(chunk)
    })()
    await thrownBy(reading, OpenAI.APIError)
    expect(seen.length).toBeGreaterThan(0)
  })

  test('a stream that the vendor cuts off is an error too', async () => {
    const stream = await client.chat.completions.create({ model, messages: user('Hi sandbox:cut=3'), stream: true })
    await thrownBy(Array.fromAsync(stream), OpenAI.APIError)
  })
})

const weatherTool = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
  },
}
const clockTool = {
  type: 'function' as const,
  function: { name: 'read_clock', parameters: { type: 'object', properties: {}, additionalProperties: false } },
}

const names = (completion: OpenAI.ChatCompletion) =>
  completion.choices[0]?.message.tool_calls?.map((call) => call.type === 'function' && call.function.name)

describe('tools', () => {
  test('a tool is called, and the conversation goes on from its result', async () => {
    const messages: OpenAI.ChatCompletionMessageParam[] = user('What is the weather in Oslo?')
    const first = await client.chat.completions.create({ model, messages, tools: [weatherTool] })
    expect(first.choices[0]?.finish_reason).toBe('tool_calls')
    const message = first.choices[0]?.message
    const [call] = message?.tool_calls ?? []
    if (message === undefined || call?.type !== 'function') throw new Error('no tool was called')
    expect(call.function.name).toBe('get_weather')
    expect(JSON.parse(call.function.arguments)).toHaveProperty('city')
    const second = await client.chat.completions.create({
      model,
      messages: [...messages, message, { role: 'tool', tool_call_id: call.id, content: '4 degrees, rain' }],
      tools: [weatherTool],
    })
    expect(second.choices[0]?.finish_reason).toBe('stop')
    expect(second.choices[0]?.message.content).not.toBeEmpty()
  })

  test('two tools are called at once, also in a stream, unless parallel calls are turned off', async () => {
    const ask = { model, messages: user('The weather and the clock, please.'), tools: [weatherTool, clockTool] }
    const whole = await client.chat.completions.create(ask)
    const streamed = await client.chat.completions.stream(ask).finalChatCompletion()
    expect(names(whole)).toEqual(['get_weather', 'read_clock'])
    expect(names(streamed)).toEqual(['get_weather', 'read_clock'])
    const one = await client.chat.completions.create({ ...ask, parallel_tool_calls: false })
    expect(names(one)).toEqual(['get_weather'])
  })

  test('a tool that is required by its name is called', async () => {
    const completion = await client.chat.completions.create({
      model,
      messages: hello,
      tools: [weatherTool, clockTool],
      tool_choice: { type: 'function', function: { name: 'read_clock' } },
    })
    const [call] = completion.choices[0]?.message.tool_calls ?? []
    expect(call?.type === 'function' && call.function.name).toBe('read_clock')
  })
})

describe('models', () => {
  test('models are listed as far as the key may use them', async () => {
    const all = await Array.fromAsync(await client.models.list())
    expect(all.map(({ id }) => id)).toContain(model)
    expect(all.every((item) => item.object === 'model' && item.created > 0 && item.owned_by !== '')).toBe(true)
    const { key } = await gateway.account({ models: ['gpt-4o*'] })
    const some = await Array.fromAsync(await clientWith(key).models.list())
    expect(some.length).toBeGreaterThan(1)
    expect(some.every(({ id }) => id.startsWith('gpt-4o'))).toBe(true)
  })

  test('a single model is found, and an unknown one is a 404', async () => {
    expect(await client.models.retrieve(model)).toMatchObject({ id: model, object: 'model', owned_by: 'openai' })
    await thrownBy(client.models.retrieve('nothing-like-it'), OpenAI.NotFoundError)
  })

  test('a model that its vendor has announced to end shows the day, under its own id and its dated ones', async () => {
    const all = new Map((await Array.fromAsync(await client.models.list())).map((each) => [each.id, each]))
    for (const id of ['gpt-4o-mini', 'gpt-4o-mini-2024-07-18']) {
      expect(all.get(id)?.shutdown_date).toBe('2027-01-14')
      expect((await client.models.retrieve(id)).shutdown_date).toBe('2027-01-14')
    }
    expect(all.get('gpt-5.2')).not.toHaveProperty('shutdown_date')
  })

  test('models show what the customer pays, and never what the vendor charges', async () => {
    const dear = await startTestGateway({ yaml: 'models: [{ id: "*", prices: { markup: "3" } }]' })
    try {
      const buyer = new OpenAI({ baseURL: `${dear.url}/v1`, apiKey: dear.key })
      const prices = { inputPerMillion: '0.45', cachedInputPerMillion: '0.225', outputPerMillion: '1.8' }
      expect(await buyer.models.retrieve('gpt-4o-mini')).toMatchObject({ prices })
      const all = new Map((await Array.fromAsync(await buyer.models.list())).map((each) => [each.id, each]))
      expect(all.get('gpt-4o-mini')).toMatchObject({ prices })
      expect(all.get('gen4-turbo')).toMatchObject({ prices: { perSecond: expect.any(Object) } })
      expect(JSON.stringify([...all.values()])).not.toMatch(/cost|confidence|source|markup/)
    } finally {
      await dear.close()
    }
  })
})

describe('errors', () => {
  test('a bad key is a 401 and is not retried', async () => {
    tries = 0
    const stranger = clientWith('sk-nobody')
    const error = await refusedForFree(gateway, () =>
      thrownBy(stranger.chat.completions.create({ model, messages: hello }), OpenAI.AuthenticationError),
    )
    expect(error).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'invalid_request_error' })
    expect(error.requestID).toStartWith('req_')
    expect(tries).toBe(1)
  })

  test('a bad field is a 400 that names it', async () => {
    tries = 0
    const error = await refusedForFree(gateway, () =>
      thrownBy(client.chat.completions.create({ model, messages: hello, temperature: 3 }), OpenAI.BadRequestError),
    )
    expect(error).toMatchObject({ status: 400, param: 'temperature', code: 'invalid_value' })
    expect(tries).toBe(1)
  })

  test('an unknown model is a 404', async () => {
    const error = await refusedForFree(gateway, () =>
      thrownBy(client.chat.completions.create({ model: 'gpt-99', messages: hello }), OpenAI.NotFoundError),
    )
    expect(error).toMatchObject({ status: 404, code: 'model_not_found' })
  })

  test.each([1, 3])('a balance that is too low is a 402 that names the affordable tokens: n of %d', async (n) => {
    const { key } = await gateway.account({ dollars: '0.0001' })
    tries = 0
    const call = () => clientWith(key).chat.completions.create({ model, messages: hello, n })
    const error = await refusedForFree(gateway, () => thrownBy(call(), OpenAI.APIError))
    expect(error).toMatchObject({ status: 402, code: 'insufficient_balance', type: 'insufficient_balance' })
    expect(tries).toBe(1)
    const affordable = Number(/affords (\d+) output tokens/.exec(error.message)?.[1])
    expect(affordable).toBeGreaterThan(0)
    // A request for that many tokens succeeds.
    const shorter = { model, messages: hello, n, max_tokens: affordable }
    expect((await clientWith(key).chat.completions.create(shorter)).choices).toHaveLength(n)
  })

  test("a vendor's rate limit is a 429 with a time to wait", async () => {
    const impatient = openaiClient(gateway)
    const call = impatient.chat.completions.create({ model, messages: user('Hi sandbox:status=429') })
    const error = await thrownBy(call, OpenAI.RateLimitError)
    expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' })
    expect(error.headers?.get('retry-after')).toBe('1')
    clock.advance(2_000)
  })

  test("a vendor's failure is a 502", async () => {
    const impatient = openaiClient(gateway)
    const call = impatient.chat.completions.create({ model, messages: user('Hi sandbox:status=500') })
    const error = await thrownBy(call, OpenAI.InternalServerError)
    expect(error).toMatchObject({ status: 502, code: 'upstream_failed', type: 'upstream_error' })
  })

  test("a vendor's refusal keeps its code and message", async () => {
    const call = client.chat.completions.create({ model, messages: user('Hi sandbox:fail=content_policy_violation') })
    const error = await thrownBy(call, OpenAI.BadRequestError)
    expect(error).toMatchObject({ status: 400, code: 'content_policy_violation' })
    expect(error.message).toContain('safety system')
  })
})
