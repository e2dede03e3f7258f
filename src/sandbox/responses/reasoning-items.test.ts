import { afterAll, describe, expect, test } from 'bun:test'
import { answerOf, openResponses } from './testing.ts'
import { errorOf } from '../testing.ts'

const { sandbox, say } = openResponses()
afterAll(() => sandbox.stop())

const user = { role: 'user', content: 'hi' }

describe('a reasoning item that is sent back', () => {
  const asked = { model: 'gpt-5', store: false, include: ['reasoning.encrypted_content'] }
  const answer = { role: 'assistant', content: 'x' }

  async function thought() {
    const [item] = (await answerOf(say('hi', asked))).output
    return item
  }

  test('an item is accepted with or without its id', async () => {
    const item = await thought()
    expect((await say([user, item, answer, user], asked)).status).toBe(200)
    expect((await say([user, { ...item, id: undefined }, answer, user], asked)).status).toBe(200)
    expect((await say([user, item, answer, user], { ...asked, model: 'gpt-5-mini' })).status).toBe(200)
  })

  test('an item is accepted by another model', async () => {
    expect((await say([user, await thought(), answer, user], { ...asked, model: 'gpt-5.4' })).status).toBe(200)
  })

  test('an item is refused by another vendor', async () => {
    const error = await errorOf(say([user, await thought(), answer, user], asked, { vendor: 'azure' }))
    expect(error).toMatchObject({ status: 400, param: 'input[1].encrypted_content', code: 'invalid_encrypted_content' })
  })

  test.each([['made up'], ['gAAAAA0000000000000000']])('the encrypted content "%s" is refused', async (sealed) => {
    const error = await errorOf(say([user, { ...(await thought()), encrypted_content: sealed }, answer, user], asked))
    expect(error.code).toBe('invalid_encrypted_content')
  })

  test.each([
    ['at the end of the input', []],
    ['before a user message', [user]],
  ])('an item is refused %s', async (_, rest) => {
    const item = await thought()
    const error = await errorOf(say([user, item, ...rest], asked))
    expect(error.message).toBe(
      `Item '${item?.id}' of type 'reasoning' was provided without its required following item.`,
    )
    expect(error.param).toBe('input')
  })
})
