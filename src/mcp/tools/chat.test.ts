import { expect, test } from 'bun:test'
import type { Asking, ToolContext } from '../tool-context.ts'
import { chat } from './chat.ts'

/** Asks with these arguments, and gives the body that the path would have read. */
async function sentBy(given: Record<string, unknown>, isProgressWanted = false): Promise<unknown> {
  let sent: unknown
  const context = {
    progress: { isWanted: isProgressWanted, during: (_: unknown, work: () => Promise<unknown>) => work(), add() {} },
    signal: new AbortController().signal,
    ask(_: string, { json }: Asking) {
      sent = json
      return Promise.resolve(Response.json({ model: 'm', choices: [] }))
    },
  } as unknown as ToolContext
  await chat.call({ model: 'm', ...given }, context)
  return sent
}

test('the instructions, the conversation and the question are sent in this order, with every other field', async () => {
  const messages = [
    { role: 'user', content: 'Name a river.' },
    { role: 'assistant', content: 'The Rhine.' },
  ]
  expect(await sentBy({ system: 'Be brief.', messages, prompt: 'Another?', max_tokens: 9, stop: ['.'] })).toEqual({
    model: 'm',
    messages: [{ role: 'system', content: 'Be brief.' }, ...messages, { role: 'user', content: 'Another?' }],
    max_tokens: 9,
    stop: ['.'],
  })
  expect(await sentBy({ messages })).toEqual({ model: 'm', messages })
})

test('an answer streams where progress is wanted, but not one that is only complete in one piece', async () => {
  const streamed = { stream: true, stream_options: { include_usage: true } }
  const asked = { prompt: 'Hi', stream: true, stream_options: {} }
  expect(await sentBy(asked, true)).toMatchObject(streamed)
  expect(await sentBy({ ...asked, n: null }, true)).toMatchObject(streamed)
  for (const [given, isWanted] of [
    [{}, false],
    [{ n: 2 }, true],
    [{ logprobs: true }, true],
    [{ modalities: ['text', 'audio'], audio: {} }, true],
  ] as const) {
    const sent = await sentBy({ ...asked, ...given }, isWanted)
    expect(sent).not.toHaveProperty('stream')
    expect(sent).not.toHaveProperty('stream_options')
  }
})
