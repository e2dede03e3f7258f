import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { until } from '../testing.ts'
import { splitTokens } from '../tokens.ts'
import {
  type Answer,
  answerOf,
  array,
  callsOf,
  events,
  eventsOf,
  finishOf,
  openGemini,
  partsOf,
  textOf,
  thirdModel,
} from './testing.ts'

const { sandbox, say, bill, clearBill } = openGemini()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const thoughts = { generationConfig: { thinkingConfig: { includeThoughts: true } } }

describe('a stream', () => {
  test('a stream has the text, usage and cost of the plain answer', async () => {
    const plain = await answerOf(say('hello'))
    const response = await say('hello', {}, { method: events })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const answers = await eventsOf(response)
    expect(textOf(answers)).toBe(textOf(plain))
    expect(answers.length).toBe(splitTokens(textOf(plain)).length + 1)
    for (const answer of answers) {
      expect(answer).toMatchObject({ modelVersion: plain.modelVersion, responseId: plain.responseId })
    }
    expect(answers.at(-1)?.usageMetadata).toEqual(plain.usageMetadata)
    const [first, second] = await bill()
    expect(second).toEqual(first)
  })

  test('only the last event has a finish reason, and there is no [DONE]', async () => {
    const text = await (await say('hello', {}, { method: events })).text()
    expect(text).toEndWith('}\r\n\r\n')
    expect(text).not.toContain('[DONE]')
    const answers = await eventsOf(say('hello', {}, { method: events }))
    expect(answers.map(finishOf).filter((finish) => finish !== undefined)).toEqual(['STOP'])
    expect(finishOf(answers.at(-1))).toBe('STOP')
  })

  test('every event reports the usage so far', async () => {
    const answers = await eventsOf(say('hello', thoughts, { method: events, model: 'gemini-2.5-pro' }))
    let thinking = 0
    let said = 0
    for (const answer of answers.slice(0, -1)) {
      if (partsOf(answer)[0]?.thought) thinking += 1
      else said += 1
      const { promptTokenCount, candidatesTokenCount = 0, thoughtsTokenCount, totalTokenCount } = answer.usageMetadata
      expect([thoughtsTokenCount, candidatesTokenCount]).toEqual([thinking, said])
      expect(totalTokenCount).toBe(promptTokenCount + thinking + said)
    }
    expect(thinking).toBe(64)
  })

  test('a stream without alt=sse is one JSON array', async () => {
    const response = await say('hello', {}, { method: array })
    expect(response.headers.get('content-type')).toStartWith('application/json')
    const answers: Answer[] = await response.json()
    expect(answers).toEqual(await eventsOf(say('hello', {}, { method: events })))
  })

  test('a function call comes whole in one event', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } }
    const tools = [{ functionDeclarations: ['get_weather', 'list_stocks'].map((name) => ({ name, parameters })) }]
    const answers = await eventsOf(say('weather and stocks', { tools }, { method: events, model: thirdModel }))
    expect(answers.length).toBe(3)
    expect(callsOf(answers).map((part) => part.functionCall?.name)).toEqual(['get_weather', 'list_stocks'])
    expect(callsOf(answers)).toEqual([
      ...callsOf(await answerOf(say('weather and stocks', { tools }, { model: thirdModel }))),
    ])
    expect(finishOf(answers[2])).toBe('STOP')
  })

  test('the signature of a text comes on an empty part in the last event', async () => {
    const answers = await eventsOf(say('hello', {}, { method: events, model: thirdModel }))
    const [last, ...others] = answers.slice(-1).flatMap((answer) => partsOf(answer))
    const signature = last?.thoughtSignature ?? 'none'
    expect([last?.text, signature.length > 20, others]).toEqual(['', true, []])
    const plain = await answerOf(say('hello', {}, { model: thirdModel }))
    expect(partsOf(plain)).toEqual([{ text: textOf(answers), thoughtSignature: signature }])
  })

  test('a stream that the client aborts is billed for what was sent', async () => {
    const leaving = new AbortController()
    const text = 'hello sandbox:pace=50 sandbox:tokens=1000'
    const response = await say(text, {}, { method: events, signal: leaving.signal })
    const reader = response.body?.getReader()
    await reader?.read()
    leaving.abort()
    const [line] = await until(async () => {
      const lines = await bill()
      return lines.length > 0 ? lines : undefined
    })
    expect(line?.status).toBe(499)
    expect(line?.units.output).toBeLessThan(100)
    expect(line?.units.output).toBeGreaterThan(0)
  })
})
