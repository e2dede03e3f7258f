import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { splitTokens } from '../tokens.ts'
import { type Block, eventsOf, messageOf, openMessages } from './testing.ts'
import { errorOf } from '../testing.ts'

const { sandbox, say, bill, clearBill } = openMessages()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const enabled = { type: 'enabled', budget_tokens: 1_024 }
const long = { max_tokens: 2_000 }
const tools = [{ name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }]

describe('thinking', () => {
  test.each([
    [{}, 0],
    [{ thinking: { type: 'disabled' } }, 0],
    [{ thinking: { type: 'between_tools' } }, 0],
    [{ thinking: enabled }, 128],
    [{ thinking: { type: 'adaptive' } }, 128],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } }, 16],
    [{ thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'max' } }, 512],
  ])('a request with %j takes %d tokens of thinking', async (fields, tokens) => {
    const { content, usage } = await messageOf(say('Think', { ...long, ...fields }))
    expect(usage.output_tokens_details.thinking_tokens).toBe(tokens)
    expect(splitTokens(content.find(({ type }) => type === 'thinking')?.thinking ?? '').length).toBe(tokens)
    expect(usage.output_tokens).toBe(tokens + splitTokens(content.at(-1)?.text ?? '').length)
    expect((await bill())[0]?.units).toMatchObject({ output: usage.output_tokens, reasoning: tokens })
  })

  test.each([
    ['claude-always', { thinking: { type: 'disabled' } }, 'disabled thinking is not supported on this model'],
    ['claude-between', { thinking: { type: 'disabled' } }, 'disabled thinking is not supported on this model'],
    ['claude-always', { thinking: { type: 'between_tools' } }, 'between_tools thinking is not supported on this model'],
    ['claude-always', { temperature: 0.5 }, '`temperature` is not taken by this model'],
    ['claude-always', { top_k: 5 }, '`top_k` is not taken by this model'],
  ])('%s refuses %j', async (model, fields, message) => {
    expect(await errorOf(say('Hi', { model, ...fields }))).toMatchObject({
      status: 400,
      message: expect.stringContaining(message),
    })
  })

  test('a stream sends the thinking and then its signature, once', async () => {
    const plain = await messageOf(say('Think', { ...long, thinking: enabled }))
    const events = await eventsOf(say('Think', { ...long, thinking: enabled, stream: true }))
    const own = events.filter(({ index, type }) => index === 0 && type === 'content_block_delta')
    expect(own.map(({ delta }) => delta.thinking ?? '').join('')).toBe(plain.content[0]?.thinking ?? '')
    expect(own.filter(({ delta }) => delta.type === 'signature_delta').length).toBe(1)
    expect(own.at(-1)?.delta.signature).toBe(plain.content[0]?.signature)
  })

  test('omitted thinking has only its signature', async () => {
    const thinking = { type: 'adaptive', display: 'omitted' }
    const { content, usage } = await messageOf(say('Think', { thinking }))
    expect(content[0]).toMatchObject({ type: 'thinking', thinking: '', signature: expect.stringMatching(/^Eq/) })
    expect(usage.output_tokens_details.thinking_tokens).toBe(128)
    const events = await eventsOf(say('Think', { thinking, stream: true }))
    const own = events.filter(({ index, type }) => index === 0 && type === 'content_block_delta')
    expect(own.map(({ delta }) => delta.type)).toEqual(['signature_delta'])
  })

  test('thinking may use all of max_tokens', async () => {
    const message = await messageOf(say('Think', { thinking: { type: 'adaptive' }, max_tokens: 10 }))
    expect(message).toMatchObject({ stop_reason: 'max_tokens', content: [{ type: 'thinking' }] })
    expect(message.usage.output_tokens).toBe(10)
  })

  test('redacted hides the thinking, which is billed even if the stream ends early', async () => {
    const { content, usage } = await messageOf(say('sandbox:redacted', { ...long, thinking: enabled }))
    expect(content[0]).toMatchObject({ type: 'redacted_thinking', data: expect.any(String) })
    expect(usage.output_tokens_details.thinking_tokens).toBe(128)
    await clearBill()
    await eventsOf(say('sandbox:redacted sandbox:eof=2', { ...long, thinking: enabled, stream: true }))
    expect((await bill())[0]?.units).toMatchObject({ output: 130, reasoning: 128 })
  })
})

describe('a tool loop with thinking', () => {
  const question = { role: 'user', content: 'What is the weather?' }

  async function firstTurn(thinking: object): Promise<Block[]> {
    const { content, stop_reason: reason } = await messageOf(
      say('', { ...long, thinking, tools, messages: [question] }),
    )
    expect(reason).toBe('tool_use')
    return content
  }
  function secondTurn(thinking: object, content: readonly Partial<Block>[]): Promise<Response> {
    const results = content
      .filter(({ type }) => type === 'tool_use')
      .map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'Sunny' }))
    const messages = [question, { role: 'assistant', content }, { role: 'user', content: results }]
    return say('', { ...long, thinking, tools, messages })
  }

  test.each([enabled, { ...enabled, display: 'omitted' }, { type: 'adaptive' }])(
    'the loop continues with %j',
    async (thinking) => {
      const answer = await messageOf(secondTurn(thinking, await firstTurn(thinking)))
      expect(answer).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'thinking' }, { type: 'text' }] })
    },
  )

  test('the loop continues with redacted thinking, and between_tools thinks after a result', async () => {
    const hidden = await messageOf(
      say('', {
        ...long,
        thinking: enabled,
        tools,
        messages: [{ role: 'user', content: 'What is the weather? sandbox:redacted' }],
      }),
    )
    expect((await secondTurn(enabled, hidden.content)).status).toBe(200)
    const between = { type: 'between_tools' }
    const plain = await firstTurn(between)
    expect(plain.map(({ type }) => type)).toEqual(['tool_use'])
    expect((await messageOf(secondTurn(between, plain))).content[0]?.type).toBe('thinking')
  })

  test('a missing or changed thinking block is refused when thinking is enabled', async () => {
    const [thought, ...rest] = await firstTurn(enabled)
    expect(await errorOf(secondTurn(enabled, rest))).toMatchObject({
      status: 400,
      message: expect.stringContaining('Expected `thinking` or `redacted_thinking`, but found `tool_use`'),
    })
    expect((await secondTurn({ type: 'adaptive' }, rest)).status).toBe(200)
    const changed = await secondTurn(enabled, [{ ...thought, thinking: 'Never.' }, ...rest])
    expect(await errorOf(changed)).toMatchObject({
      status: 400,
      message: 'messages.1.content.0: Invalid `signature` in `thinking` block',
    })
  })
})
