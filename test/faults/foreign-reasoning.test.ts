import { expect, test } from 'bun:test'
import { startTestGateway } from '../support/gateway.ts'
import { recordOf } from '../support/records.ts'
import { answer, startVendor, wholeResponse } from '../support/vendor.ts'

const refusal = {
  error: {
    message: 'The encrypted content gAAA could not be verified.',
    type: 'invalid_request_error',
    param: 'input[1].encrypted_content',
    code: 'invalid_encrypted_content',
  },
}

// OpenAI encrypts reasoning for one account, and an operator may have several.
test('a conversation goes on at the account that can decrypt its reasoning, and only that call is paid for', async () => {
  const first = await startVendor((socket) => void socket.write(answer(400, JSON.stringify(refusal))))
  const second = await startVendor((socket) => void socket.write(answer(200, JSON.stringify(wholeResponse))))
  const yaml = `
sandbox: false
channels:
  - { id: first, vendor: openai, baseUrl: "${first.baseUrl}", keys: [a], priority: 1 }
  - { id: second, vendor: openai, baseUrl: "${second.baseUrl}", keys: [b], priority: 2 }
models:
  - id: m
    capability: chat
    reasoning: true
    channels: [{ channel: first }, { channel: second }]
    prices: { inputPerMillion: "1", outputPerMillion: "10" }
`
  const gateway = await startTestGateway({ yaml })
  try {
    const input = [
      { role: 'user', content: 'Hello' },
      { type: 'reasoning', summary: [], encrypted_content: 'gAAA' },
      { role: 'assistant', content: 'Hi' },
      { role: 'user', content: 'And?' },
    ]
    const response = await gateway.post('/v1/responses', { model: 'm', input, max_output_tokens: 100 })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ model: 'm', status: 'completed' })
    expect([first.requests.length, second.requests.length]).toEqual([1, 1])
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ basis: 'vendor', cost: 200_000n, usage: { input: 100, output: 10 } })
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    await first.stop()
    await second.stop()
  }
})
