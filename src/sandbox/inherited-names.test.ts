import { afterAll, expect, test } from 'bun:test'
import { errorForCode as dashscopeError } from './dashscope/errors.ts'
import { errorForCode as geminiError } from './gemini/errors.ts'
import { errorForCode as messagesError } from './messages/errors.ts'
import { schemaInstance } from './schema-instance.ts'
import { seeded } from './seeded.ts'
import { completionOf, errorOf, openSandbox } from './testing.ts'

const { sandbox, say, bill } = openSandbox()
afterAll(() => sandbox.stop())

/** A property that every object inherits: tables must not find it under this name. */
const word = 'constructor'

test.each([
  ['deepseek', 'reasoner'],
  ['dashscope', 'qwen-plus'],
])('an effort with the name of an inherited property is one that %s does not know', async (vendor, model) => {
  const { usage } = await completionOf(say('hi', { model, reasoning_effort: word }, { vendor, ref: vendor }))
  expect(usage.completion_tokens_details.reasoning_tokens).toBe(64)
  expect((await bill(vendor)).map(({ units }) => units.reasoning)).toEqual([64])
})

test('a failure with the name of an inherited property is a 400 with that code', async () => {
  expect(await errorOf(say(`sandbox:fail=${word}`))).toMatchObject({ status: 400, code: word })
  for (const errorFor of [dashscopeError, geminiError, messagesError]) expect(errorFor(word).status).toBe(400)
})

test('a format of a schema with the name of an inherited property is ignored', () => {
  expect(schemaInstance({ type: 'string', format: word }, seeded(1))).toBeString()
})
