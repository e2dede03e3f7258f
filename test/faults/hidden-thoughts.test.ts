import { expect, test } from 'bun:test'
import { startTestGateway } from '../support/gateway.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { answer, startVendor, wholeResponse } from '../support/vendor.ts'

const refusal = {
  error: {
    message: 'Your organization must be verified to generate reasoning summaries.',
    type: 'invalid_request_error',
    param: 'reasoning.summary',
    code: 'unsupported_value',
  },
}

const messages = [{ role: 'user', content: 'Hello' }]

// OpenAI shows thoughts to organizations that it has verified, and refuses others the whole request.
test.each([
  ['/v1/messages', { messages, max_tokens: 2_000, thinking: { type: 'enabled', budget_tokens: 1_024 } }],
  ['/v1/responses', { input: messages, reasoning: { effort: 'low', summary: 'auto' } }],
])('%s: who may not see thoughts has the answer all the same, and pays for it alone', async (path, body) => {
  const vendor = await startVendor((socket, request) => {
    const isShown = JSON.stringify(request.body['reasoning']).includes('summary')
    socket.write(isShown ? answer(400, JSON.stringify(refusal)) : answer(200, JSON.stringify(wholeResponse)))
  })
  const yaml = `
sandbox: false
channels: [{ id: only, vendor: openai, baseUrl: "${vendor.baseUrl}", keys: [a] }]
models:
  - id: m
    capability: chat
    reasoning: true
    efforts: [low, high]
    channels: [{ channel: only }]
    prices: { inputPerMillion: "1", outputPerMillion: "10" }
`
  const gateway = await startTestGateway({ yaml })
  try {
    const response = await gateway.post(path, { model: 'm', ...body })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('Hi')
    expect(vendor.requests.map(({ body: asked }) => asked['reasoning'])).toEqual([
      { effort: 'low', summary: 'auto' },
      { effort: 'low' },
    ])
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ basis: 'vendor', cost: 200_000n })
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 400])
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})
