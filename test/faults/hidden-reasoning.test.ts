import { expect, test } from 'bun:test'
import { startTestGateway } from '../support/gateway.ts'
import { standingClock } from '../support/movable-clock.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { answer, startVendor, wholeResponse, type RawVendor } from '../support/vendor.ts'

const refusal = {
  error: {
    message: 'Your organization must be verified to generate reasoning summaries.',
    type: 'invalid_request_error',
    param: 'reasoning.summary',
    code: 'unsupported_value',
  },
}

const messages = [{ role: 'user', content: 'Hello' }]
const shown = { effort: 'low', summary: 'auto' }
const hidden = { effort: 'low' }

const settings = ({ baseUrl }: Pick<RawVendor, 'baseUrl'>) => `
sandbox: false
channels: [{ id: only, vendor: openai, baseUrl: "${baseUrl}", keys: [a] }]
models:
  - id: m
    capability: chat
    reasoning: true
    efforts: [low, high]
    channels: [{ channel: only }]
    prices: { inputPerMillion: "1", outputPerMillion: "10" }
`

// OpenAI shows reasoning summaries only to organizations that it has verified, and refuses the whole request of others.
test.each([
  ['/v1/messages', { messages, max_tokens: 2_000, thinking: { type: 'enabled', budget_tokens: 1_024 } }],
  ['/v1/responses', { input: messages, reasoning: { effort: 'low', summary: 'auto' } }],
])('%s: a request refused for its reasoning summary is answered without it and paid once', async (path, body) => {
  const vendor = await startVendor((socket, request) => {
    const isShown = JSON.stringify(request.body['reasoning']).includes('summary')
    socket.write(isShown ? answer(400, JSON.stringify(refusal)) : answer(200, JSON.stringify(wholeResponse)))
  })
  const clock = standingClock()
  const gateway = await startTestGateway({ yaml: settings(vendor), clock })
  const asked = () => vendor.requests.splice(0).map(({ body: { reasoning } }) => reasoning)
  try {
    const response = await gateway.post(path, { model: 'm', ...body })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('Hi')
    expect(asked()).toEqual([shown, hidden])
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ basis: 'vendor', cost: 200_000n })
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 400])

    // Later requests leave the summary out at once. After ten minutes the account may be verified, so it is tried
    // again.
    expect((await gateway.post(path, { model: 'm', ...body })).status).toBe(200)
    expect(asked()).toEqual([hidden])
    clock.advance(10 * 60_000)
    expect((await gateway.post(path, { model: 'm', ...body })).status).toBe(200)
    expect(asked()).toEqual([shown, hidden])
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})

// Otherwise one customer could hide the reasoning from all the others that share a key.
test('a 400 that only quotes the words about verification is passed on to the client', async () => {
  const quoted = 'Your organization must be verified to see reasoning.summary'
  const error = { message: `Invalid value: '${quoted}'.`, type: 'invalid_request_error', param: 'reasoning.summary' }
  const vendor = await startVendor((socket) => void socket.write(answer(400, JSON.stringify({ error }))))
  const gateway = await startTestGateway({ yaml: settings(vendor) })
  try {
    const response = await gateway.post('/v1/responses', { model: 'm', input: 'Hi', reasoning: { effort: 'low' } })
    expect(response.status).toBe(400)
    expect(vendor.requests).toHaveLength(1)
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})
