import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { chunksOf, completionOf, contentOf, eventsOf, openSandbox, until } from '../testing.ts'

const { sandbox, say, bill, clearBill } = openSandbox()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const stream = { stream: true, stream_options: { include_usage: true } }

function choice(delta: object, finish: string | null = null): object {
  return { choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: null }
}

async function hangUpAfterFirstRead(text: string, more: object): Promise<void> {
  const abort = new AbortController()
  const response = await say(text, more, { signal: abort.signal })
  const reader = response.body?.getReader()
  await reader?.read()
  abort.abort()
  await reader?.read().catch(() => undefined)
}

const firstLine = () => until(async () => (await bill())[0])

const paddings = async (more: object, vendor = 'openai') => {
  const chunks = await chunksOf(say('Go on', { ...stream, ...more }, { vendor }))
  return chunks.map((chunk) => ('obfuscation' in chunk ? String(chunk.obfuscation).length : 0))
}

describe('the layout of a stream', () => {
  test('a stream is the role, a chunk per token, the finish reason, the usage and [DONE]', async () => {
    const response = await say('Go on', { ...stream, max_tokens: 3 })
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    const events = await eventsOf(response)
    expect(events.at(-1)).toBe('[DONE]')
    const chunks = events.slice(0, -1).map((event): unknown => JSON.parse(event))
    expect(chunks).toMatchObject([
      choice({ role: 'assistant', content: '', refusal: null }),
      choice({ content: expect.any(String) }),
      choice({ content: expect.any(String) }),
      choice({ content: expect.any(String) }),
      choice({}, 'length'),
      { choices: [], usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } },
    ])
    expect(new Set(chunks.map((chunk) => JSON.stringify(chunk).slice(0, 60))).size).toBe(1)
  })

  test('OpenAI pads its chunks at random unless obfuscation is switched off, DeepSeek never', async () => {
    const lengths = await paddings({})
    expect(Math.min(...lengths)).toBeGreaterThan(0)
    expect(new Set(lengths).size).toBeGreaterThan(3)
    const unpadded = { stream_options: { include_usage: true, include_obfuscation: false } }
    expect(new Set(await paddings(unpadded))).toEqual(new Set([0]))
    expect(new Set(await paddings({ model: 'reasoner' }, 'deepseek'))).toEqual(new Set([0]))
  })

  test('a stream has no usage unless it is requested', async () => {
    const response = await say('Go on', { stream: true })
    expect(await response.text()).not.toContain('usage')
  })

  test('a stream has the content, usage and cost of the plain answer', async () => {
    const chunks = await chunksOf(say('Go on', stream))
    const plain = await completionOf(say('Go on'))
    expect(contentOf(chunks)).toBe(plain.choices[0]?.message.content ?? '')
    expect(chunks.at(-1)?.usage).toEqual(plain.usage)
    const lines = await bill()
    expect(lines.slice(0, 1)).toEqual(lines.slice(1))
  })

  test('a stream carries every choice, each with its own finish reason', async () => {
    const chunks = await chunksOf(say('Go on', { ...stream, n: 3 }))
    const plain = await completionOf(say('Go on', { n: 3 }))
    for (const choice of plain.choices) expect(contentOf(chunks, choice.index)).toBe(choice.message.content ?? '')
    const ends = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.finish_reason !== null)
    expect(ends.length).toBe(3)
    expect(new Set(ends.map((choice) => choice.index))).toEqual(new Set([0, 1, 2]))
    expect(chunks.at(-1)?.usage).toEqual(plain.usage)
  })

  test('the reasoning of DeepSeek comes before the content', async () => {
    const chunks = await chunksOf(say('Think', { model: 'reasoner', ...stream }, { vendor: 'deepseek' }))
    const plain = await completionOf(say('Think', { model: 'reasoner' }, { vendor: 'deepseek' }))
    const deltas = chunks.flatMap((chunk) => chunk.choices).map((choice) => choice.delta)
    expect(deltas[0]).toEqual({ role: 'assistant', content: null, reasoning_content: '' })
    const thoughts = deltas.map((delta) => delta.reasoning_content ?? '').join('')
    expect(thoughts).toBe(plain.choices[0]?.message.reasoning_content ?? '')
    const firstWord = deltas.findIndex((delta) => delta.content)
    expect(deltas.findLastIndex((delta) => delta.reasoning_content)).toBeLessThan(firstWord)
    expect(contentOf(chunks)).toBe(plain.choices[0]?.message.content ?? '')
    expect(chunks.at(-1)?.usage).toEqual(plain.usage)
  })

  test('every content chunk carries the log probability of its token', async () => {
    const chunks = await chunksOf(say('"logprobs":null', { stream: true, logprobs: true }))
    const words = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.delta.content)
    for (const { delta, logprobs } of words) expect(logprobs).toMatchObject({ content: [{ token: delta.content }] })
  })
})

describe('when the client hangs up', () => {
  test('an endless stream stops and is billed for what was sent', async () => {
    await hangUpAfterFirstRead('sandbox:endless', stream)
    const { status, units, cost } = await firstLine()
    expect(status).toBe(499)
    expect(units.input).toBeGreaterThan(0)
    expect(units.output).toBeGreaterThan(0)
    expect(cost).not.toBe('0')
    expect((await bill()).length).toBe(1)
  })

  // The first read gets the role; the first word comes ten minutes later.
  test('a stream aborted before its first word is billed for its prompt only', async () => {
    await hangUpAfterFirstRead('sandbox:pace=600000', stream)
    const { status, units } = await firstLine()
    expect(status).toBe(499)
    expect(units.input).toBeGreaterThan(0)
    expect(units.output).toBe(0)
  })

  test('a request aborted before the response headers costs nothing', async () => {
    for (const more of [{}, stream]) {
      await clearBill()
      const abort = new AbortController()
      const response = say('sandbox:delay=600000', more, { signal: abort.signal, ref: 'late' })
      await until(async () => {
        const seen = await fetch(`${sandbox.url}/__calls`)
        return (await seen.text()).includes('"ref":"late"') || undefined
      })
      abort.abort()
      await response.catch(() => undefined)
      expect(await firstLine()).toMatchObject({ ref: 'late', status: 499, cost: '0' })
    }
  })

  test('a plain answer that never ends costs nothing', async () => {
    await hangUpAfterFirstRead('sandbox:endless', {})
    expect(await firstLine()).toMatchObject({ status: 499, cost: '0' })
  })
})
