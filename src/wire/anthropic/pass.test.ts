import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { markGoogle } from '../../capabilities/conversation.ts'
import { passAnswer } from './pass-answer.ts'
import { passAsk } from './pass-ask.ts'
import { askOf } from './testing.ts'
import { readUsage, writeUsage } from './usage.ts'

const pass = (native: JsonObject, upstreamModel = 'theirs') =>
  JSON.parse(
    passAsk(askOf(native, { stream: false }), { upstreamModel, namespaced: (label) => `mine/${label}` }),
  ) as JsonObject

describe('a request that is passed through', () => {
  const messages = [{ role: 'user', content: 'Hi' }]

  test('only the model and the label of the user are changed', () => {
    const native = { model: 'ours', messages, odd: { deep: [1] }, metadata: { user_id: 'ann', more: 1 } }
    expect(pass(native)).toEqual({ ...native, model: 'theirs', metadata: { user_id: 'mine/ann', more: 1 } })
    expect(pass({ messages, metadata: null })).toEqual({ model: 'theirs', messages, metadata: null })
  })

  test('thinking that this vendor cannot have signed is removed', () => {
    const own = { type: 'thinking', thinking: 'Hm', signature: 'Eq1' }
    const unsigned = { type: 'thinking', thinking: 'Hm', signature: '' }
    const google = { type: 'thinking', thinking: '', signature: markGoogle('x') }
    const text = { type: 'text', text: 'Hi' }
    const written = [
      { role: 'assistant', content: [own, text] },
      { role: 'assistant', content: [unsigned, google, text] },
      { role: 'assistant', content: [unsigned] },
      ...messages,
    ]
    expect(pass({ messages: written })['messages']).toEqual([
      { role: 'assistant', content: [own, text] },
      { role: 'assistant', content: [text] },
      ...messages,
    ])
    // Vendors of these models serve this protocol too, sign nothing, and refuse a conversation without their thinking.
    for (const model of ['deepseek-v4-pro', 'kimi-k2.5']) {
      expect(pass({ messages: written }, model)['messages']).toEqual([
        { role: 'assistant', content: [own, text] },
        { role: 'assistant', content: [unsigned, text] },
        { role: 'assistant', content: [unsigned] },
        ...messages,
      ])
    }
  })

  test('the signature that Google gave a call is removed from it', () => {
    const call = { type: 'tool_use', id: 'a', name: 'f', input: {} }
    const signed = { ...call, extra_content: { google: { thought_signature: 'x' } } }
    const text = { type: 'text', text: 'I look.', extra_content: { ours: 1 } }
    const written = [{ role: 'assistant', content: [text, signed] }, ...messages]
    expect(pass({ messages: written })['messages']).toEqual([{ role: 'assistant', content: [text, call] }, ...messages])
  })
})

test('a web search without a price is refused unless its max_uses is 0', () => {
  const search = { type: 'web_search_20250305', name: 'web_search' }
  const messages = [{ role: 'user', content: 'Hi' }]
  expect(() => pass({ messages, tools: [search] })).toThrow(
    expect.objectContaining({ details: expect.objectContaining({ param: 'tools[0].type' }) }),
  )
  expect(pass({ messages, tools: [{ ...search, max_uses: 0 }] })).toHaveProperty('tools')
})

const answer = { id: 'msg_1', type: 'message', model: 'theirs', content: [{ type: 'text', text: 'Hello there' }] }
const counted = { input_tokens: 3, output_tokens: 5 }
const passed = (body: unknown) => passAnswer(askOf({}, { stream: false }), Buffer.from(JSON.stringify(body)))

describe('an answer that is passed through', () => {
  test('an answer keeps its bytes except for the model, and its usage is read', () => {
    const { body, usage } = passed({ ...answer, usage: counted })
    expect(Buffer.from(body).toString()).toBe(JSON.stringify({ ...answer, model: 'ours', usage: counted }))
    expect(usage).toMatchObject({ input: 3, output: 5 })
  })

  test('an answer without usage is estimated at one output token or more', () => {
    const uncounted = passed(answer)
    expect(uncounted.usage).toBeUndefined()
    expect(uncounted.estimateOutput()).toBeWithin(1, 6)
    expect(passed({ ...answer, content: [] }).estimateOutput()).toBe(1)
  })

  test.each([
    ['an error with status 200', { type: 'error', error: { type: 'api_error', message: 'on fire' } }, 'on fire'],
    ['no content', { id: 'msg_1' }, 'without content'],
    ['not an object', [], 'no answer'],
  ])('an unusable answer is a failure: %s', (_name, body, message) => {
    expect(() => passed(body)).toThrow(message)
  })
})

describe('usage', () => {
  test('input, cache reads and cache writes of each lifetime are counted apart', () => {
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 30,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
      output_tokens: 7,
      output_tokens_details: { thinking_tokens: 4 },
      server_tool_use: { web_search_requests: 2 },
    }
    const read = {
      input: 10,
      cachedInput: 100,
      cacheWrite: 20,
      cacheWriteHour: 10,
      output: 7,
      reasoning: 4,
      webSearch: 2,
    }
    expect(readUsage(usage)).toEqual(read)
    expect(readUsage(writeUsage(read))).toEqual(read)
  })

  test('tokens written to the cache are counted by their parts where there is no total', () => {
    const cache_creation = { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 }
    expect(readUsage({ input_tokens: 1, cache_creation })).toMatchObject({ cacheWrite: 20, cacheWriteHour: 10 })
  })

  test('the tokens of a compaction are added to the usage', () => {
    const iterations = [
      { type: 'compaction', input_tokens: 1_000, output_tokens: 50, cache_read_input_tokens: 5 },
      { type: 'message', input_tokens: 10, output_tokens: 7 },
    ]
    expect(readUsage({ ...counted, iterations })).toMatchObject({ input: 1_003, output: 55, cachedInput: 5 })
  })

  test.each([
    [
      { input_tokens: -5, output_tokens: 2.5 },
      { input: 0, output: 2 },
    ],
    [{ input_tokens: 'x', output_tokens: 1e300 }, { output: 1_000_000_000 }],
    [{ cache_creation: { ephemeral_1h_input_tokens: 9 } }, { cacheWrite: 0, cacheWriteHour: 9 }],
  ])('implausible or incomplete counts are corrected: %j', (usage, read) => {
    expect(readUsage(usage)).toMatchObject(read)
  })

  test('usage without output_tokens has no output count, and null is no usage', () => {
    expect(readUsage({ input_tokens: 5 })).not.toHaveProperty('output')
    expect(readUsage(null)).toBeUndefined()
  })

  test('image, audio and cache-write tokens are included in the written totals', () => {
    const kept = { cacheWrite: 7, cacheWriteHour: 8 }
    const shown = writeUsage({ input: 1, imageInput: 2, audioInput: 3, ...kept, output: 4, audioOutput: 5 })
    expect(shown).toMatchObject({
      input_tokens: 6,
      output_tokens: 9,
      cache_creation_input_tokens: 15,
      cache_creation: { ephemeral_5m_input_tokens: 7, ephemeral_1h_input_tokens: 8 },
      cache_read_input_tokens: 0,
      server_tool_use: null,
    })
  })
})
