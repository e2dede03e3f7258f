import { expect, test } from 'bun:test'
import { startTestGateway } from '../support/gateway.ts'
import { says } from '../support/streams.ts'
import { answer, startVendor } from '../support/vendor.ts'

const tooMany = {
  error: {
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
    message: 'You exceeded your current quota.',
    details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' }],
  },
}
const spoken = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
}

// Vendors count the requests for each model separately.
test('a model over its rate does not keep the key from serving other models', async () => {
  const vendor = await startVendor((socket, { head }) => {
    const isBusy = head.includes('gemini-2.5-pro')
    socket.write(isBusy ? answer(429, JSON.stringify(tooMany)) : answer(200, JSON.stringify(spoken)))
  })
  const yaml = `
sandbox: false
channels: [{ id: main, vendor: google, baseUrl: "${vendor.baseUrl}", keys: ["only-key"] }]
`
  const gateway = await startTestGateway({ yaml })
  try {
    const ask = async (model: string) => {
      const response = await gateway.post('/v1/chat/completions', says('Hello!', { model }))
      await response.text()
      return { status: response.status, retryAfter: Number(response.headers.get('retry-after')) }
    }
    expect(await ask('gemini-2.5-pro')).toEqual({ status: 429, retryAfter: 35 })
    expect(await ask('gemini-2.5-flash')).toMatchObject({ status: 200 })
    // The vendor is not asked while the key rests, and requests get the same error meanwhile.
    const meanwhile = await ask('gemini-2.5-pro')
    expect(meanwhile.status).toBe(429)
    expect(meanwhile.retryAfter).toBeWithin(6, 36)
    expect(vendor.requests).toHaveLength(2)
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})
