import { expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import { eventsOf, replies } from '../../../test/support/conversations.ts'
import { GatewayError } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import { writeError, writeStreamError } from './errors.ts'
import { openWriter } from './reply-writer.ts'
import { askOf, name } from './testing.ts'
import { writeAnswer } from './write-answer.ts'

// The vendor's own client library checks that our answers follow its protocol.
const params = {
  model: 'ours',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Hi' }],
  thinking: { type: 'adaptive' as const },
}
const ask = askOf(params)

function clientOf(body: Uint8Array | string, status = 200, headers: Record<string, string> = {}): Anthropic {
  const fetch = () => Promise.resolve(new Response(new Blob([body as BlobPart]), { status, headers }))
  return new Anthropic({ apiKey: 'sk-test', baseURL: 'http://ours.example', maxRetries: 0, fetch })
}

/** A text without citations may have null or no such field. */
function contentOf({ content }: Anthropic.Message): unknown[] {
  return content.map((block) => (block.type === 'text' ? { ...block, citations: block.citations ?? null } : block))
}

const json = { 'content-type': 'application/json' }
const sse = { 'content-type': 'text/event-stream' }

test('the official client assembles the same message from a stream as from a whole answer', async () => {
  await fc.assert(
    fc.asyncProperty(replies, async (reply) => {
      const whole = await clientOf(writeAnswer(ask, reply, name), 200, json).messages.create(params)
      const writer = openWriter(ask, name)
      const written = eventsOf(reply, () => 0).flatMap((event) => writer.write([event]) ?? [])
      const bytes = Buffer.concat([...written, writer.closing(reply.usage)])
      const streamed = await clientOf(bytes, 200, sse).messages.stream(params).finalMessage()
      expect(contentOf(streamed)).toEqual(contentOf(whole))
      expect(streamed.stop_reason).toBe(whole.stop_reason)
      expect(streamed.usage).toMatchObject({
        input_tokens: whole.usage.input_tokens,
        output_tokens: whole.usage.output_tokens,
        cache_read_input_tokens: whole.usage.cache_read_input_tokens,
        cache_creation_input_tokens: whole.usage.cache_creation_input_tokens,
      })
    }),
    { numRuns: 50 },
  )
})

test('the official client throws its own APIError, before a stream and within it', async () => {
  const { status, body, headers } = writeError(new GatewayError('no-funds', 'No money.'), 'req_1' as RequestId)
  const refused = await clientOf(body, status, { ...headers })
    .messages.create(params)
    .catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(Anthropic.APIError)
  expect(refused).toMatchObject({ status: 402, requestID: 'req_1', error: { error: { type: 'billing_error' } } })
  const cut = Buffer.concat([
    openWriter(ask, name).write([{ kind: 'text-delta', choice: 0, text: 'Hel' }]) ?? new Uint8Array(),
    writeStreamError(new GatewayError('overloaded', 'Busy.')),
  ])
  const failed = await clientOf(cut, 200, sse)
    .messages.stream(params)
    .finalMessage()
    .catch((error: unknown) => error)
  expect(failed).toBeInstanceOf(Anthropic.APIError)
  expect(String(failed)).toContain('overloaded_error')
})
