import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { answerOf, openResponses } from './testing.ts'

const { sandbox, say, bill, clearBill } = openResponses()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const sealed = { store: false, include: ['reasoning.encrypted_content'] }
const typesOf = ({ output }: { output: { type: string }[] }): string[] => output.map(({ type }) => type)

describe('an answer', () => {
  test('the same request yields the same answer, which echoes its fields and is billed', async () => {
    const more = {
      instructions: 'Be brief.',
      max_output_tokens: 100,
      metadata: { a: 'b' },
      prompt_cache_key: 'k',
      safety_identifier: 's',
      store: false,
      temperature: 0.5,
      text: { verbosity: 'low' },
      tools: [{ type: 'function', name: 'f' }],
      tool_choice: 'none',
    }
    const first = await answerOf(say('Go on', more, { ref: 'attempt-1' }))
    expect<object>(await answerOf(say('Go on', more))).toEqual({
      ...first,
      created_at: expect.any(Number),
      completed_at: expect.any(Number),
    })
    expect(first).toMatchObject({
      object: 'response',
      status: 'completed',
      model: 'gpt-4o',
      error: null,
      incomplete_details: null,
      previous_response_id: null,
      parallel_tool_calls: true,
      reasoning: { effort: null, summary: null },
      top_p: 1,
      truncation: 'disabled',
      ...more,
      text: { format: { type: 'text' }, verbosity: 'low' },
      tools: [{ type: 'function', name: 'f', description: null, parameters: null, strict: true }],
    })
    expect(first.id).toStartWith('resp_')
    const [message] = first.output
    expect(message).toMatchObject({ type: 'message', status: 'completed', role: 'assistant' })
    expect<object | undefined>(message?.content).toEqual([
      { type: 'output_text', annotations: [], logprobs: [], text: expect.stringContaining('Go on') },
    ])
    const { input_tokens: input = 0, output_tokens: output = 0 } = first.usage ?? {}
    const [line] = await bill()
    expect(line).toEqual({
      ref: 'attempt-1',
      model: 'gpt-4o',
      status: 200,
      units: { input, cachedInput: 0, output, reasoning: 0 },
      cost: `0.${String(input * 2 + output * 10)
        .padStart(9, '0')
        .replace(/0+$/, '')}`,
    })
  })

  test.each([
    ['gpt-4o', undefined, 0, null],
    ['gpt-5', undefined, 64, 'medium'],
    ['gpt-5', { effort: 'minimal' }, 8, 'minimal'],
    ['gpt-5.4', undefined, 0, 'none'],
    ['gpt-5.4', { effort: 'xhigh' }, 256, 'xhigh'],
    ['gpt-5.6-sol', undefined, 64, 'medium'],
    ['gpt-5.6-sol', { effort: 'none' }, 0, 'none'],
  ])('an answer of %s at %p takes %d reasoning tokens', async (model, reasoning, tokens, effort) => {
    const answer = await answerOf(say('Go on', { model, reasoning }))
    expect(answer).toMatchObject({ reasoning: { effort, summary: null } })
    expect(typesOf(answer)).toEqual(tokens > 0 ? ['reasoning', 'message'] : ['message'])
    if (tokens > 0)
      expect<object | undefined>(answer.output[0]).toEqual({
        type: 'reasoning',
        id: expect.stringMatching(/^rs_/),
        summary: [],
      })
    expect(answer.usage?.output_tokens_details.reasoning_tokens).toBe(tokens)
    const [line] = await bill()
    expect([line?.units['reasoning'], line?.units['output']]).toEqual([tokens, answer.usage?.output_tokens])
  })

  test('a summary and encrypted reasoning come only on request and cost nothing extra', async () => {
    const silent = await answerOf(say('Go on', { model: 'gpt-5' }))
    const told = await answerOf(say('Go on', { model: 'gpt-5', reasoning: { summary: 'auto' }, ...sealed }))
    expect(told.output[0]).toMatchObject({
      summary: [{ type: 'summary_text', text: expect.any(String) }],
      encrypted_content: expect.stringMatching(/^gAAAAA/),
    })
    expect(told.usage).toEqual(silent.usage)
  })

  test('an answer ends at its cap, which includes reasoning', async () => {
    const short = await answerOf(say('Go on sandbox:tokens=50', { max_output_tokens: 20 }))
    expect(short).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
    expect([short.output[0]?.status, short.usage?.output_tokens]).toEqual(['incomplete', 20])
    const lost = await answerOf(say('Go on', { model: 'gpt-5', max_output_tokens: 40 }))
    expect([typesOf(lost), lost.status]).toEqual([['reasoning'], 'incomplete'])
    expect(lost.usage).toMatchObject({ output_tokens: 40, output_tokens_details: { reasoning_tokens: 40 } })
  })

  test('refusal and finish make the answer refused, filtered or failed', async () => {
    const refused = await answerOf(say('sandbox:refusal'))
    expect<object | undefined>(refused.output[0]?.content).toEqual([
      { type: 'refusal', refusal: expect.stringContaining('sorry') },
    ])
    const filtered = await answerOf(say('Go on sandbox:finish=content_filter'))
    expect(filtered).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } })
    const failed = await answerOf(say('Go on sandbox:finish=failed'))
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'server_error' }, output: [], usage: null })
    expect((await bill()).map(({ cost }) => cost === '0')).toEqual([false, false, true])
  })

  test('json_object yields JSON, and logprobs come on request', async () => {
    const object = await answerOf(say('Some JSON', { text: { format: { type: 'json_object' } } }))
    expect(JSON.parse(object.output[0]?.content[0]?.text ?? '')).toMatchObject({ sandbox: true })
    const more = { include: ['message.output_text.logprobs'], top_logprobs: 2 }
    const [part] = (await answerOf(say('Go on', more))).output[0]?.content ?? []
    expect(part?.logprobs[0]).toMatchObject({ token: expect.any(String), top_logprobs: [{}, {}] })
  })

  test('Azure serves both protocols and accepts the key in the api-key header', async () => {
    const body = { model: 'gpt-5', input: 'Go on' }
    for (const [path, fields] of [
      ['/responses', body],
      ['/chat/completions', { model: 'gpt-5', messages: [{ role: 'user', content: 'Go on' }] }],
    ] as const) {
      const response = await fetch(sandbox.baseUrl('azure') + path, {
        method: 'POST',
        headers: { 'api-key': 'vendor-key' },
        body: JSON.stringify(fields),
      })
      expect(response.status).toBe(200)
    }
    expect(await answerOf(say('Go on', body, { vendor: 'azure' }))).toMatchObject({ status: 'completed' })
  })
})

describe('the prompt cache', () => {
  const long = 'road '.repeat(2_000)

  test.each([
    ['gpt-5.4', 0],
    // 2,000 words and a few tokens more: 15 blocks of 128 are first written to the cache and then read from it.
    ['gpt-5.6-sol', 1_920],
  ])('a repeated prompt to %s is read from the cache and billed as cached', async (model, written) => {
    const body = { model, prompt_cache_key: model, reasoning: { effort: 'none' } }
    const usages = [await answerOf(say(long, body)), await answerOf(say(long, body))].map(({ usage }) => usage)
    const details = usages.map((usage) => usage?.input_tokens_details)
    expect(details).toEqual([
      { cached_tokens: 0, cache_write_tokens: written },
      { cached_tokens: 1_920, cache_write_tokens: 0 },
    ])
    const total = usages[0]?.input_tokens ?? 0
    expect(usages[1]?.input_tokens).toBe(total)
    const lines = await bill()
    expect(lines.map(({ units }) => [units['input'], units['cachedInput'], units['cacheWrite5m'] ?? 0])).toEqual([
      [total - written, 0, written],
      [total - 1_920, 1_920, 0],
    ])
  })
})

describe('tools', () => {
  const weather = {
    type: 'function',
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
  }
  const patch = {
    type: 'custom',
    name: 'apply_patch',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
  }
  const finder = {
    type: 'tool_search',
    execution: 'client',
    description: 'Finds tools',
    parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  }
  const space = {
    type: 'namespace',
    name: 'crm',
    description: 'Customers',
    tools: [{ type: 'function', name: 'list_orders' }],
  }

  test.each([
    ['when the text names it', 'How is the weather?', {}, ['function_call', 'get_weather']],
    [
      'when it is forced',
      'Hello',
      { tool_choice: { type: 'function', name: 'get_weather' } },
      ['function_call', 'get_weather'],
    ],
    ['when a call is required', 'Hello', { tool_choice: 'required' }, ['function_call', 'get_weather']],
    ['by a steering word', 'sandbox:tool=apply_patch', {}, ['custom_tool_call', 'apply_patch']],
    [
      'from the allowed tools',
      'Hello',
      { tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'custom', name: 'apply_patch' }] } },
      ['custom_tool_call', 'apply_patch'],
    ],
    ['in a namespace', 'All orders', {}, ['function_call', 'list_orders']],
    ['to search for tools', 'sandbox:tool=tool_search', {}, ['tool_search_call', undefined]],
  ])('a tool is called %s', async (_, text, more, [type, name]) => {
    const answer = await answerOf(say(text, { tools: [weather, patch, space, finder], ...more }))
    expect<object | undefined>(answer.output.map((item) => [item.type, item.name])).toEqual([[type, name]])
    expect(answer.output[0]?.call_id).toStartWith('call_')
    expect(answer.status).toBe('completed')
  })

  test('each kind of tool is called in its own form', async () => {
    const tools = [weather, patch, space, finder]
    const first = async (text: string) => (await answerOf(say(text, { tools }))).output[0]
    expect(JSON.parse((await first('weather'))?.arguments ?? '')).toEqual({ city: expect.any(String) })
    expect(await first('patch it')).toMatchObject({ id: expect.stringMatching(/^ctc_/), input: 'patch it' })
    expect(await first('orders')).toMatchObject({ id: expect.stringMatching(/^fc_/), namespace: 'crm' })
    expect(await first('sandbox:tool=tool_search')).toMatchObject({
      execution: 'client',
      arguments: { query: expect.any(String) },
    })
  })

  test('a deferred tool is called only after a tool search has found it', async () => {
    const later = { ...weather, defer_loading: true }
    expect(typesOf(await answerOf(say('weather', { tools: [later] })))).toEqual(['message'])
    const found = [
      { role: 'user', content: 'Find it' },
      { type: 'tool_search_call', call_id: 'call_1', execution: 'client', arguments: {} },
      { type: 'tool_search_output', call_id: 'call_1', execution: 'client', tools: [later] },
      { role: 'user', content: 'weather' },
    ]
    expect(typesOf(await answerOf(say(found, { tools: [later] })))).toEqual(['function_call'])
  })

  test('a tool is not called again after its result, even if the user then names it', async () => {
    const handedIn = [
      { role: 'user', content: 'weather' },
      { type: 'function_call', call_id: 'call_1', name: 'get_weather', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'Sunny' },
    ]
    const behind = { role: 'user', content: '<file of="get_weather">' }
    for (const input of [handedIn, [...handedIn, behind, behind]]) {
      expect(typesOf(await answerOf(say(input, { tools: [weather] })))).toEqual(['message'])
    }
  })

  test('calls are parallel unless switched off, and a cap cuts the arguments short', async () => {
    const clock = { type: 'function', name: 'read_clock' }
    const text = 'weather and clock'
    expect((await answerOf(say(text, { tools: [weather, clock] }))).output).toHaveLength(2)
    expect((await answerOf(say(text, { tools: [weather, clock], parallel_tool_calls: false }))).output).toHaveLength(1)
    const parameters = {
      type: 'object',
      properties: { a: { const: 'x '.repeat(40) } },
      required: ['a'],
      additionalProperties: false,
    }
    const cut = await answerOf(say('weather', { tools: [{ ...weather, parameters }], max_output_tokens: 16 }))
    expect([cut.status, cut.output[0]?.status, cut.usage?.output_tokens]).toEqual(['incomplete', 'incomplete', 16])
  })

  test('a web search is made, cited and billed', async () => {
    const more = { tools: [{ type: 'web_search' }], include: ['web_search_call.action.sources'] }
    const answer = await answerOf(say('Search for roads', more))
    expect(typesOf(answer)).toEqual(['web_search_call', 'message'])
    expect(answer.output[0]).toMatchObject({
      status: 'completed',
      action: { type: 'search', sources: [{ type: 'url' }, {}] },
    })
    expect(answer.output[1]?.content[0]?.annotations[0]).toMatchObject({ type: 'url_citation' })
    expect((await bill())[0]?.units['webSearches']).toBe(1)
  })
})
