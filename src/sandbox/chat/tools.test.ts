import { afterAll, describe, expect, test } from 'bun:test'
import { chunksOf, completionOf, openSandbox } from '../testing.ts'

const { sandbox, say, post } = openSandbox()
afterAll(() => sandbox.stop())

const place = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const weather = { type: 'function', function: { name: 'get_weather', parameters: place } }
const stocks = { type: 'function', function: { name: 'lookUpStocks', parameters: place } }
const notes = { type: 'custom', custom: { name: 'take_notes' } }
const tools = [weather, stocks, notes]

async function namesOf(text: string, more: object = {}): Promise<string[]> {
  const { choices } = await completionOf(say(text, { tools, ...more }))
  return (choices[0]?.message.tool_calls ?? []).map((call) => (call.function ?? call.custom).name)
}

const only = (mode: string, ...allowed: object[]) => ({
  tool_choice: { type: 'allowed_tools', allowed_tools: { mode, tools: allowed } },
})

describe('the tools called', () => {
  test.each([
    ['no tool that the text does not name', 'Hello there', {}, []],
    ['the tool whose word is in the text', 'How is the WEATHER?', {}, ['get_weather']],
    ['a tool whose name is in camel case', 'What about stocks', {}, ['lookUpStocks']],
    ['no tool for a word of three letters', 'get it', {}, []],
    ['no tool for a part of a word', 'weathered', {}, []],
    ['several tools side by side', 'weather and stocks', {}, ['get_weather', 'lookUpStocks']],
    ['one tool when parallel calls are off', 'weather and stocks', { parallel_tool_calls: false }, ['get_weather']],
    ['no tool when the choice is none', 'weather', { tool_choice: 'none' }, []],
    ['the first tool when one is required', 'Hello', { tool_choice: 'required' }, ['get_weather']],
    ['the tool that the text names when one is required', 'stocks', { tool_choice: 'required' }, ['lookUpStocks']],
    [
      'the forced function',
      'weather',
      { tool_choice: { type: 'function', function: { name: 'lookUpStocks' } } },
      ['lookUpStocks'],
    ],
    [
      'the forced custom tool',
      'Hello',
      { tool_choice: { type: 'custom', custom: { name: 'take_notes' } } },
      ['take_notes'],
    ],
    ['only allowed tools', 'weather', only('auto', stocks), []],
    ['an allowed tool when one is required', 'weather', only('required', stocks), ['lookUpStocks']],
    ['the tool of a steering word', 'Hello sandbox:tool=take_notes', {}, ['take_notes']],
  ])('the model calls %s', async (_, text, more, names) => {
    expect(await namesOf(text, more)).toEqual(names)
  })

  test('the model calls no tool after a result, even when one is required', async () => {
    const messages = [
      { role: 'user', content: 'weather sandbox:tool=get_weather' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'Sunny' },
    ]
    // Anything besides text in a result follows it in a user message, which may name the tool.
    const behind = { role: 'user', content: '<file of="get_weather">' }
    for (const handedIn of [messages, [...messages, behind, behind]]) {
      for (const tool_choice of ['auto', 'required']) {
        const { choices } = await completionOf(post({ model: 'plain', messages: handedIn, tools, tool_choice }))
        expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: expect.any(String) } })
      }
    }
  })
})

describe('the older functions parameter', () => {
  const functions = [
    { name: 'get_weather', parameters: place },
    { name: 'lookUpStocks', parameters: place },
  ]

  test.each([
    ['the forced function', 'weather', { function_call: { name: 'lookUpStocks' } }, 'lookUpStocks'],
    ['the function whose word is in the text', 'How is the weather?', {}, 'get_weather'],
    ['only one function', 'weather and stocks', { function_call: 'auto' }, 'get_weather'],
    ['no function when the choice is none', 'weather', { function_call: 'none' }, undefined],
  ])('the model calls %s, in the older form', async (_, text, more, name) => {
    const { choices } = await completionOf(say(text, { functions, ...more }))
    const [choice] = choices
    expect(choice?.message.function_call?.name).toBe(name as never)
    expect(choice?.message.tool_calls).toBeUndefined()
    expect(choice?.finish_reason).toBe(name === undefined ? 'stop' : 'function_call')
    if (name !== undefined) {
      expect(JSON.parse(choice?.message.function_call?.arguments ?? '')).toEqual({ city: expect.any(String) })
    }
  })

  test('a stream carries the same call, and the functions count towards the prompt', async () => {
    const ask = { functions, function_call: { name: 'get_weather' } }
    const plain = await completionOf(say('Hello', ask))
    const chunks = await chunksOf(say('Hello', { ...ask, stream: true }))
    const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.function_call ?? [])
    expect(deltas[0]).toEqual({ name: 'get_weather', arguments: '' })
    const streamed = deltas.map((delta) => delta.arguments).join('')
    expect(streamed).toBe(plain.choices[0]?.message.function_call?.arguments ?? '')
    expect(chunks.at(-1)?.choices[0]).toMatchObject({ delta: {}, finish_reason: 'function_call' })
    const without = await completionOf(say('Hello'))
    expect(plain.usage.prompt_tokens).toBeGreaterThan(without.usage.prompt_tokens)
  })

  test('a forced function that is not offered is refused', async () => {
    const response = await say('Hello', { functions, function_call: { name: 'zz' } })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param: 'function_call' } })
  })
})

test('an allowed tool that is not offered is refused', async () => {
  const response = await say('Hello', {
    tools,
    ...only('required', weather, { type: 'function', function: { name: 'z' } }),
  })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { param: 'tool_choice' } })
})

describe('a tool call', () => {
  test('the arguments of a call fit the schema and count as output', async () => {
    const { choices, usage } = await completionOf(say('weather', { tools }))
    expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } })
    const [call] = choices[0]?.message.tool_calls ?? []
    expect(call).toMatchObject({ type: 'function', id: expect.stringMatching(/^call_\w{24}$/) })
    expect(JSON.parse(call?.function.arguments ?? '')).toEqual({ city: expect.any(String) })
    expect(usage.completion_tokens).toBeGreaterThan(0)
  })

  test('the same request yields the same call', async () => {
    const [once, again] = [await completionOf(say('weather', { tools })), await completionOf(say('weather', { tools }))]
    expect(once.choices).toEqual(again.choices)
  })

  test('a call of a custom tool has an input', async () => {
    const { choices } = await completionOf(say('Please take notes', { tools }))
    expect(choices[0]?.message.tool_calls).toMatchObject([
      { type: 'custom', custom: { name: 'take_notes', input: 'Please take notes' } },
    ])
  })

  test('max_tokens cuts the call inside its arguments', async () => {
    const { choices, usage } = await completionOf(say('weather', { tools, max_tokens: 6 }))
    expect(choices[0]?.finish_reason).toBe('length')
    expect(usage.completion_tokens).toBe(6)
  })

  test.each([
    ['openai', 'plain', undefined],
    ['dashscope', 'qwen-plus', ''],
  ])('a call is streamed in fragments at %s', async (vendor, model, laterId) => {
    const chunks = await chunksOf(say('weather and stocks', { model, tools, stream: true }, { vendor }))
    const plain = await completionOf(say('weather and stocks', { model, tools }, { vendor }))
    expect(chunks[0]?.choices[0]?.delta).toMatchObject({ role: 'assistant', content: null })
    const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? [])
    for (const [index, call] of (plain.choices[0]?.message.tool_calls ?? []).entries()) {
      const [first, ...rest] = deltas.filter((delta) => delta.index === index)
      expect(first).toMatchObject({
        id: call.id,
        type: 'function',
        function: { name: call.function.name, arguments: '' },
      })
      expect(rest.length).toBeGreaterThan(1)
      expect(new Set(rest.map((delta) => delta.id))).toEqual(new Set([laterId]))
      expect(rest.map((delta) => delta.function?.arguments).join('')).toBe(call.function.arguments)
    }
    expect(chunks.at(-1)?.choices[0]).toMatchObject({ delta: {}, finish_reason: 'tool_calls' })
  })
})
