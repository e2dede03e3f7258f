import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import type { RequestId } from '../base/ids.ts'
import { writeError as writeMessagesError, writeStreamError } from './anthropic/errors.ts'
import { writeError as writeChatError } from './openai/errors.ts'
import { writeError as writeResponsesError } from './responses/errors.ts'

const id = 'req_1' as RequestId
const said = (protocol: string, message: string, code?: string) => {
  const body = JSON.stringify({ error: { message, ...(code !== undefined && { code }) } })
  return new GatewayError('upstream-rejected', message, { refusal: { protocol, status: 400, body } })
}
const errorIn = ({ body }: { body: string }) => (JSON.parse(body) as { error: object }).error

const tooLong = 'prompt is too long: '

function toldMessagesClient(refusal: GatewayError): string {
  const { type, message } = errorIn(writeMessagesError(refusal, id)) as { type: string; message: string }
  expect(type).toBe('invalid_request_error')
  return message
}

describe('a conversation that is too long', () => {
  test.each([
    ['anthropic', 'prompt is too long: 210000 tokens > 200000 maximum'],
    ['anthropic', 'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000'],
    ['gemini', 'The input token count (1200002) exceeds the maximum number of tokens allowed (1048576).'],
  ])('the error in the common protocol has the code context_length_exceeded: %s, %s', (protocol, message) => {
    for (const writeError of [writeChatError, writeResponsesError]) {
      expect(errorIn(writeError(said(protocol, message), id))).toMatchObject({
        message: expect.stringContaining(message),
        code: 'context_length_exceeded',
      })
    }
  })

  test.each([
    "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens.",
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    'Invalid request: Your request exceeded model token limit: 262144',
    'Range of input length should be [1, 129024]',
    'request (24071 tokens) exceeds the available context size (8192 tokens), try increasing it',
    'prompt too long; exceeded max context length by 12 tokens',
    'the input length exceeds the context length',
    'The number of tokens to keep from the initial prompt is greater than the context length (9000 > 4096).',
    'However, the model is loaded with context length of only 4096 tokens.',
    'Context size has been exceeded.',
    'The decoder prompt (length 40000) is longer than the maximum model length of 32768.',
    "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    'Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).',
    'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.',
    "You passed 99073 input tokens. However, the model's context length is only 131072 tokens.",
    'length of prompt_tokens (40000) must be less than max_seq_len (32768).',
    'Input length 203743 exceeds the maximum length 202752. Request id: 0217',
    'prompt token count of 391491 exceeds the limit of 128000',
    '`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens',
    'Input is too long for requested model.',
    'The input token count (1200002) exceeds the maximum number of tokens allowed (1048576).',
  ])('the error for a client of messages begins with "prompt is too long": %s', (message) => {
    for (const protocol of ['openai', 'gemini'])
      expect(toldMessagesClient(said(protocol, message))).toBe(tooLong + message)
  })

  test('a vendor that says it by its code alone is told to a client of messages in the same words', () => {
    const message = 'Please reduce the length of the messages.'
    const told = toldMessagesClient(said('openai', message, 'context_length_exceeded'))
    expect(told).toBe(tooLong + message)
  })

  test('an error with the code context_length_exceeded begins with "prompt is too long" too', () => {
    const failed = new GatewayError('upstream-rejected', 'Too much.', { code: 'context_length_exceeded' })
    expect(errorIn(writeMessagesError(failed, id))).toMatchObject({ message: 'prompt is too long: Too much.' })
  })

  test('a vendor message that begins with "prompt is too long" gets no second prefix', () => {
    const told = Buffer.from(writeStreamError(said('anthropic', 'prompt is too long: 210000 tokens'))).toString()
    expect(told.match(/prompt is too long/g)).toHaveLength(1)
  })

  test('other refusals are not reported as too long', () => {
    const other = said('gemini', 'Request contains an invalid argument.')
    expect(errorIn(writeChatError(other, id))).toMatchObject({ code: 'invalid_value' })
    expect(errorIn(writeMessagesError(other, id))).toMatchObject({ message: other.message })
    const ours = new GatewayError('bad-request', "Invalid 'name': prompt is too long")
    expect(errorIn(writeChatError(ours, id))).toMatchObject({ code: 'invalid_value' })
  })

  test('begins in the common protocol with words of OpenAI by which LiteLLM recognises it, unless they are its own', () => {
    const message = 'prompt is too long: 210000 tokens > 200000 maximum'
    expect(errorIn(writeChatError(said('anthropic', message), id))).toMatchObject({
      message: `This model's maximum context length is exceeded: ${message}`,
    })
    const own = new GatewayError('upstream-rejected', 'Your input exceeds the context window of this model.')
    expect(errorIn(writeChatError(own, id))).toMatchObject({ message: own.message, code: 'context_length_exceeded' })
  })
})
