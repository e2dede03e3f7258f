import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { InvalidWebhookSignatureError, type OpenAI } from 'openai'
import { Webhook } from 'standardwebhooks'
import { openaiClient } from '../support/clients.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { operatorOf } from '../support/operator.ts'
import { startReceiver, type Received, type Receiver } from '../support/receiver.ts'

// A webhook about a finished video, verified with the official client.

let gateway: TestGateway
let receiver: Receiver
let secret: string
let client: OpenAI
let taskId: string
let letter: Received

beforeAll(async () => {
  gateway = await startTestGateway()
  receiver = await startReceiver()
  const made = await operatorOf(gateway).call('POST', `/admin/accounts/${gateway.accountId}/webhook-secret`)
  secret = String(made.body['secret'])
  client = openaiClient(gateway, { webhookSecret: secret })
  const ask = { model: 'wan2.6-t2v', input: { prompt: 'A fox – in the snow 雪' }, webhook_url: receiver.url() }
  const created = await gateway.post('/v1/videos/generations', ask)
  expect(created.status).toBe(202)
  taskId = ((await created.json()) as { id: string }).id
  await until(() => receiver.received.length > 0)
  letter = receiver.received[0] as Received
}, 120_000)

afterAll(async () => {
  await gateway.assertBooks()
  await gateway.close()
  receiver.close()
})

type Altered = { body?: string; headers?: Record<string, string>; secret?: string }

function unwrap({ body = letter.body, headers = {}, secret }: Altered = {}) {
  return client.webhooks.unwrap(body, { ...(letter.headers as Record<string, string>), ...headers }, secret)
}

/** The message of the client's error. */
async function refusal(altered: Altered): Promise<string> {
  const thrown: unknown = await unwrap(altered).catch((error: unknown) => error)
  expect(thrown).toBeInstanceOf(InvalidWebhookSignatureError)
  return (thrown as Error).message
}

const otherSignature = /does not match/

describe('the official client', () => {
  test('the client accepts a webhook as it was delivered', async () => {
    expect(letter.body).toContain(taskId)
    expect((await unwrap()) as unknown).toEqual(JSON.parse(letter.body))
  })

  test('the client accepts a webhook with the old and the new secret while both are valid', async () => {
    const before = receiver.received.length
    const made = await operatorOf(gateway).call('POST', `/admin/accounts/${gateway.accountId}/webhook-secret`)
    const id = String(letter.headers['webhook-id'])
    await operatorOf(gateway).call('POST', `/admin/webhooks/${id}/resend`)
    await until(() => receiver.received.length > before)
    const again = receiver.received.at(-1) as Received
    expect(again.headers['webhook-id']).toBe(id)
    const headers = again.headers as Record<string, string>
    for (const each of [secret, String(made.body['secret'])]) {
      expect((await unwrap({ body: again.body, headers, secret: each })) as unknown).toEqual(JSON.parse(letter.body))
    }
  })

  test.each<[string, () => Altered]>([
    ['body', () => ({ body: letter.body.replace(taskId, `${taskId}x`) })],
    ['white space', () => ({ body: `${letter.body}\n` })],
    ['id', () => ({ headers: { 'webhook-id': 'evt_another' } })],
    ['time', () => ({ headers: { 'webhook-timestamp': String(Number(letter.headers['webhook-timestamp']) + 1) } })],
    ['secret', () => ({ secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}` })],
  ])('the client refuses a webhook with another %s', async (_what, altered) => {
    expect(await refusal(altered())).toMatch(otherSignature)
  })

  // Signed correctly for its timestamp, so that only its age is wrong.
  test.each([
    [-301, /too old/],
    [310, /too new/],
  ])('the client refuses a webhook dated %d seconds from now', async (seconds, words) => {
    const at = new Date(Date.now() + seconds * 1000)
    const signature = new Webhook(secret).sign(String(letter.headers['webhook-id']), at, letter.body)
    const timestamp = String(Math.floor(at.getTime() / 1000))
    expect(await refusal({ headers: { 'webhook-timestamp': timestamp, 'webhook-signature': signature } })).toMatch(
      words,
    )
  })
})
