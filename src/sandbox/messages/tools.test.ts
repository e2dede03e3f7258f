import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { errorOf } from '../testing.ts'
import { eventsOf, messageOf, openMessages } from './testing.ts'

const { sandbox, say, post, bill, clearBill } = openMessages()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const weather = { name: 'get_weather', input_schema: schema }
const time = { name: 'current_time', input_schema: { type: 'object' } }
const tools = [weather, time]

const namesIn = (content: readonly { name: string }[]): string[] => content.map(({ name }) => name)

describe('tools', () => {
  test.each([
    ['Tell me the weather', {}, ['get_weather']],
    ['The weather at this time', {}, ['get_weather', 'current_time']],
    ['The weather at this time', { type: 'auto', disable_parallel_tool_use: true }, ['get_weather']],
    ['The weather at this time', { type: 'none' }, []],
    ['Nothing of the kind', {}, []],
    ['Nothing of the kind', { type: 'any' }, ['get_weather']],
    ['Nothing of the kind', { type: 'tool', name: 'current_time' }, ['current_time']],
    ['sandbox:tool=current_time', {}, ['current_time']],
  ])('the prompt "%s" with the tool choice %j calls %j', async (text, choice, names) => {
    const more = 'type' in choice ? { tool_choice: choice } : {}
    const { content, stop_reason: reason } = await messageOf(say(text, { tools, ...more }))
    const calls = content.filter(({ type }) => type === 'tool_use')
    expect(namesIn(calls)).toEqual(names)
    expect(reason).toBe(names.length > 0 ? 'tool_use' : 'end_turn')
    for (const { id } of calls) expect(id).toMatch(/^toolu_01\w+$/)
  })

  test('a forced call is refused by a model that calls only by its own choice, also where tokens are counted', async () => {
    const message = 'tool_choice: type "tool" and "any" are not supported for this model.'
    for (const tool_choice of [{ type: 'any' }, { type: 'tool', name: 'current_time' }]) {
      expect((await say('Hi', { tools, tool_choice })).status).toBe(200)
      const forced = { model: 'claude-always', tools, tool_choice }
      expect(await errorOf(say('Hi', forced))).toMatchObject({ status: 400, message })
      const counted = post(
        { ...forced, messages: [{ role: 'user', content: 'Hi' }] },
        { path: '/v1/messages/count_tokens' },
      )
      expect(await errorOf(counted)).toMatchObject({ status: 400, message })
    }
    const free = { model: 'claude-always', tools, tool_choice: { type: 'auto' } }
    expect((await say('Hi', free)).status).toBe(200)
  })

  test.each([
    ['Answer by calling one of the tools, not in words.', 'Hi', ['get_weather']],
    ['Be brief.\nAnswer by calling one of the tools, not in words.', 'What time?', ['current_time']],
    ['Answer by calling the tool current_time, not in words.', 'The weather', ['current_time']],
    ['Answer by calling the tool unknown, not in words.', 'Hi', []],
    ['Answer in words.', 'Hi', []],
  ])('the instructions "%s" beside "%s" call %j on such a model', async (system, text, names) => {
    for (const tool_choice of [undefined, { type: 'auto' }]) {
      const { content } = await messageOf(say(text, { model: 'claude-always', system, tools, tool_choice }))
      expect(namesIn(content.filter(({ type }) => type === 'tool_use'))).toEqual(names)
    }
    const refused = { model: 'claude-always', system, tools, tool_choice: { type: 'none' } }
    expect(await messageOf(say(text, refused))).toMatchObject({ stop_reason: 'end_turn' })
  })

  test('words that ask for a call or for JSON are obeyed in the message of a user, too, where there are no instructions', async () => {
    const { content } = await messageOf(say('Be brief. Answer by calling one of the tools, not in words.', { tools }))
    expect(namesIn(content)).toEqual(['get_weather'])
    const [said] = (await messageOf(say('Answer with one JSON object and nothing else.'))).content
    expect(JSON.parse(said?.text ?? '')).toBeObject()
  })

  test('the input of a call fits the schema and is streamed in pieces', async () => {
    const { content, usage } = await messageOf(say('The weather at this time', { tools }))
    expect(content[0]).toMatchObject({ input: { city: expect.any(String) }, caller: { type: 'direct' } })
    const events = await eventsOf(say('The weather at this time', { tools, stream: true }))
    for (const [index, block] of content.entries()) {
      const deltas = events.filter((event) => event.index === index && event.delta?.type === 'input_json_delta')
      const json = deltas.map(({ delta }) => delta.partial_json).join('')
      expect(JSON.parse(json || '{}')).toEqual(block.input)
    }
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: 'tool_use' },
      usage: { output_tokens: usage.output_tokens },
    })
  })

  test('max_tokens cuts a call inside its input', async () => {
    const { content, stop_reason: reason } = await messageOf(say('The weather', { tools, max_tokens: 5 }))
    expect([reason, content[0]?.input]).toEqual(['max_tokens', {}])
  })
})

describe('web search', () => {
  const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 8, allowed_domains: ['roads.example'] }

  test('a search is made, cited and billed within the turn', async () => {
    const { content, usage, stop_reason: reason } = await messageOf(say('Search for roads', { tools: [search] }))
    const replayed = structuredClone(content)
    expect(content.map(({ type }) => type)).toEqual(['server_tool_use', 'web_search_tool_result', 'text'])
    const [asked, found, said] = content
    expect(found?.tool_use_id).toBe(asked?.id ?? '')
    expect(asked).toMatchObject({ id: expect.stringMatching(/^srvtoolu_/), input: { query: 'Search for roads' } })
    expect(found?.content[0]).toMatchObject({ type: 'web_search_result', url: 'https://roads.example/road/1' })
    expect(said?.citations?.[0]).toMatchObject({
      type: 'web_search_result_location',
      url: 'https://roads.example/road/1',
    })
    expect([reason, usage.server_tool_use?.web_search_requests]).toEqual(['end_turn', 1])
    const [line] = await bill()
    expect(line?.units).toMatchObject({ webSearches: 1, input: usage.input_tokens })
    // In nano-dollars: 2 in, 10 out, 1,000 for the search.
    const nano = usage.input_tokens * 2 + usage.output_tokens * 10 + 1_000
    expect(line?.cost).toBe((nano / 1e9).toFixed(9).replace(/0+$/, ''))
    // Search results are accepted when they come back unchanged.
    const messages = [
      { role: 'user', content: 'Search for roads' },
      { role: 'assistant', content: replayed },
      { role: 'user', content: 'Thanks' },
    ]
    expect((await say('', { messages, tools: [search] })).status).toBe(200)
  })

  test('a streamed search raises the input tokens at the end', async () => {
    const events = await eventsOf(say('Search for roads', { tools: [search], stream: true }))
    const [started, ended] = [events[0]?.message.usage, events.at(-2)?.usage]
    expect(started?.server_tool_use).toBeNull()
    expect(ended?.server_tool_use).toMatchObject({ web_search_requests: 1 })
    expect(ended?.input_tokens).toBeGreaterThan(started?.input_tokens ?? 0)
    const found = events.find((event) => event.content_block?.type === 'web_search_tool_result')
    expect(found?.content_block.content.length).toBe(2)
    expect(events.filter((event) => event.delta?.type === 'citations_delta').length).toBe(2)
  })

  test('a search that the stream did not reach costs nothing', async () => {
    await eventsOf(say('Search for roads sandbox:eof=1', { tools: [search], stream: true }))
    await eventsOf(say('Search for roads sandbox:eof=40', { tools: [search], stream: true }))
    expect((await bill()).map(({ units }) => units.webSearches)).toEqual([0, 1])
  })

  test('pause interrupts the turn, and the next request completes it', async () => {
    const question = { role: 'user', content: 'Search for roads sandbox:pause' }
    const paused = await messageOf(say('', { messages: [question], tools: [search] }))
    expect(paused).toMatchObject({ stop_reason: 'pause_turn' })
    expect(paused.content.map(({ type }) => type)).toEqual(['server_tool_use', 'web_search_tool_result'])
    const more = { model: 'claude-new', messages: [question, { role: 'assistant', content: paused.content }] }
    expect((await messageOf(say('', { ...more, tools: [search] }))).stop_reason).toBe('end_turn')
  })
})
