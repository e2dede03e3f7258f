import { describe, expect, test } from 'bun:test'
import { costsNothing, gatewaysToVendors, vendorKey } from '../support/raw-vendors.ts'
import { startTestGateway } from '../support/gateway.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { event, startVendor, stream } from '../support/vendor.ts'

/** OpenAI begins a stream before it has counted the prompt, and refuses a prompt that is too long inside the stream. */

const { opened } = gatewaysToVendors()
const tooLong = 'Your input exceeds the context window of this model.'
const error = { type: 'invalid_request_error', code: 'context_length_exceeded', message: tooLong, param: 'input' }
const response = { id: 'resp_1', object: 'response', status: 'in_progress', error: null, model: 'theirs', output: [] }
const failed = { ...response, status: 'failed', error: { code: error.code, message: tooLong }, usage: null }
const begun = ['created', 'in_progress'].map((type) => ({ type: `response.${type}`, response }))
const refusals = [
  ['an error', { type: 'error', error }],
  ['a response that failed', { type: 'response.failed', response: failed }],
] as const

async function gatewayTo(...rest: readonly object[]) {
  const events = [...begun, ...rest].map(event).join('')
  const vendor = await startVendor((socket) => void socket.write(stream(events)))
  const gateway = await startTestGateway({
    yaml: `
sandbox: false
channels:
  - { id: openai, vendor: openai, baseUrl: "${vendor.baseUrl}", keys: [${vendorKey}] }
models:
  - id: gpt-5.6-sol
    capability: chat
    reasoning: true
    channels: [{ channel: openai }]
    prices: { inputPerMillion: "1", outputPerMillion: "10", tiers: [] }
`,
  })
  opened(gateway, vendor)
  return gateway
}

const said = { model: 'gpt-5.6-sol', stream: true, messages: [{ role: 'user', content: 'Hi' }] }

describe.each(refusals)('a prompt that is refused in the stream by %s', (_how, refusal) => {
  test('a client of messages gets a 400 that costs nothing', async () => {
    const gateway = await gatewayTo(refusal)
    const answer = await gateway.post('/v1/messages', { ...said, max_tokens: 100 })
    const told = { type: 'invalid_request_error', message: `prompt is too long: ${tooLong}` }
    expect(await answer.json()).toMatchObject({ error: told })
    await costsNothing(gateway, answer, 400)
  })

  test("a client of chat completions gets a 400 in OpenAI's words that costs nothing", async () => {
    const gateway = await gatewayTo(refusal)
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }]
    const answer = await gateway.post('/v1/chat/completions', { ...said, tools })
    expect(await answer.json()).toMatchObject({ error: { code: error.code, message: tooLong } })
    await costsNothing(gateway, answer, 400)
  })

  test('a client of responses gets the error code in its stream, and pays nothing', async () => {
    const gateway = await gatewayTo(refusal)
    const answer = await gateway.post('/v1/responses', { model: said.model, input: 'Hi', stream: true })
    const last = (await answer.text()).trim().split('data: ').at(-1) ?? ''
    const { code, message } = error
    expect(JSON.parse(last)).toMatchObject({
      type: 'response.failed',
      response: { id: 'resp_1', model: said.model, status: 'failed', error: { code, message } },
      error: { code, message },
    })
    expect(await recordOf(gateway, answer)).toMatchObject({ cost: 0n })
  })
})

describe('a response that fails after its first words, with the usage until then', () => {
  const words = { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'Hi' }
  const usage = { input_tokens: 100, output_tokens: 30, output_tokens_details: { reasoning_tokens: 20 } }
  const failure = { code: 'server_error', message: 'Broken.' }
  const ending = { type: 'response.failed', response: { ...response, status: 'failed', error: failure, usage } }

  test.each([
    ['/v1/messages', { ...said, max_tokens: 100 }],
    ['/v1/chat/completions', { ...said, tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] }],
    ['/v1/responses', { model: said.model, input: 'Hi', stream: true }],
  ])('is charged by that usage on %s', async (path, body) => {
    const gateway = await gatewayTo(words, ending)
    const answer = await gateway.post(path, body)
    expect(await answer.text()).toContain('Broken.')
    // 100 tokens of input at $1, and 30 of output at $10 a million.
    const cost = 400_000n
    expect(await recordOf(gateway, answer)).toMatchObject({ cost, usage: { input: 100, output: 30, reasoning: 20 } })
    expect(await attemptsOf(gateway, answer)).toMatchObject([{ vendor_cost: cost }])
  })
})

describe('a stream in which the vendor refuses the key of our own account after the first words', () => {
  const words = { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'Hi' }
  const quota = { type: 'insufficient_quota', code: 'insufficient_quota', message: 'You exceeded your current quota.' }

  test.each([
    ['/v1/messages', { ...said, max_tokens: 100 }],
    ['/v1/chat/completions', { ...said, tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] }],
    ['/v1/responses', { model: said.model, input: 'Hi', stream: true }],
  ])('does not tell the client why on %s', async (path, body) => {
    const gateway = await gatewayTo(words, { type: 'error', error: quota })
    const text = await (await gateway.post(path, body)).text()
    expect(text).toContain('Hi')
    expect(text).not.toContain('quota')
    expect(text).toContain('error')
    // The key rests, and there is no other.
    expect((await gateway.post(path, body)).status).toBe(503)
  })
})
