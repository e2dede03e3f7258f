import { expect, test } from 'bun:test'
import { readFailure } from './anthropic/errors.ts'
import { readFinish as readAnthropicFinish } from './anthropic/read-answer.ts'
import { readAnswer as readGeminiAnswer } from './gemini/read-answer.ts'
import { readFinish } from './openai/read-answer.ts'

/** A property that every object inherits: tables must not find it under this name. */
const word = 'constructor'

test('an unknown finish reason with the name of an inherited property is an ordinary end', () => {
  expect(readFinish(word, false)).toBe('stop')
  expect(readFinish(word, true)).toBe('tool-calls')
  expect(readAnthropicFinish(word, false)).toBe('stop')
  const candidate = { content: { parts: [{ text: 'Hi' }] }, finishReason: word }
  const answer = readGeminiAnswer(Buffer.from(JSON.stringify({ candidates: [candidate] })))
  expect(answer.choices.map(({ finish }) => finish)).toEqual(['stop'])
})

test('an unknown error type with the name of an inherited property is upstream-failed', () => {
  expect(readFailure({ type: word, message: 'no' })).toMatchObject({ kind: 'upstream-failed', message: 'no' })
})
