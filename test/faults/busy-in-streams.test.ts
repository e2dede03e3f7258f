import { describe, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { standingClock } from '../support/movable-clock.ts'
import { gatewaysToVendors } from '../support/raw-vendors.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { answer, event, startVendor, stream, type RawVendor } from '../support/vendor.ts'

// A vendor may begin a stream and say in it that the request is over our rate, or that our credit has run out: that
// means the same as under an HTTP status of its own.

const { opened } = gatewaysToVendors()
let gateway: TestGateway
let vendor: RawVendor

const isFirst = (head: string) => /(?:bearer |key: ?)first-key/i.test(head)
const callsOfFirst = () => vendor.requests.filter(({ head }) => isFirst(head)).length
const complaints = () => gateway.logged.filter((line) => line.includes('a vendor refuses a key'))

/** Two channels at one vendor, or one of them. The vendor answers the first key with `said` and nothing else. */
async function open(vendorId: string, said: string | Buffer, keys = ['first-key', 'other-key']): Promise<void> {
  vendor = await startVendor((socket, { head }) => void socket.write(isFirst(head) ? said : (made[vendorId] ?? '')))
  const channels = keys.map((key, priority) => ({
    id: key,
    vendor: vendorId,
    baseUrl: vendorId === 'anthropic' ? vendor.origin : vendor.baseUrl,
    keys: [key],
    priority,
  }))
  const prices = { inputPerMillion: '1', outputPerMillion: '10', tiers: [] }
  const model = { id: 'm', capability: 'chat', reasoning: vendorId === 'openai', prices }
  const offers = keys.map((channel) => ({ channel, upstreamModel: 'm' }))
  gateway = await startTestGateway({
    // So that a rest of one second does not end, however slow the machine is.
    clock: standingClock(),
    yaml: [
      'sandbox: false',
      `channels: ${JSON.stringify(channels)}`,
      `models: ${JSON.stringify([{ ...model, channels: offers }])}`,
    ].join('\n'),
  })
  opened(gateway, vendor)
}

const chunk = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' }
const begunResponse = { id: 'resp_1', object: 'response', status: 'in_progress', error: null, model: 'm', output: [] }
const begun = ['created', 'in_progress'].map((type) => event({ type: `response.${type}`, response: begunResponse }))
const part = { item_id: 'msg_1', output_index: 0, content_index: 0 }
const usage = { input_tokens: 100, output_tokens: 10 }

/** What each vendor answers the other key: two letters, for 100 tokens in and 10 out. */
const made: Readonly<Record<string, Buffer>> = {
  compatible: stream(
    [
      { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }] },
      { ...chunk, choices: [], usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 } },
      '[DONE]',
    ]
      .map(event)
      .join(''),
  ),
  anthropic: stream(
    [
      { type: 'message_start', message: { id: 'msg_1', role: 'assistant', content: [], model: 'm', usage } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
      { type: 'message_stop' },
    ]
      .map(event)
      .join(''),
  ),
  openai: stream(
    [
      ...begun,
      event({ type: 'response.output_text.delta', ...part, delta: 'Hi' }),
      event({ type: 'response.completed', response: { ...begunResponse, status: 'completed', usage } }),
    ].join(''),
  ),
  google: stream(
    event({
      candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
    }),
  ),
}

const messages = [{ role: 'user', content: 'Hello' }]
const paths = {
  '/v1/chat/completions': { model: 'm', messages, stream: true },
  '/v1/messages': { model: 'm', messages, stream: true, max_tokens: 100 },
  '/v1/responses': { model: 'm', input: messages, stream: true },
} as const
type Path = keyof typeof paths
const ask = (path: Path) => gateway.post(path, paths[path])

const common = (code: string) => ({ error: { message: 'so it is', type: 'tokens', param: null, code } })
const native = (type: string) => ({ type: 'error', error: { type, message: 'so it is' } })
const failed = (code: string) => ({
  type: 'response.failed',
  response: { ...begunResponse, status: 'failed', error: { code, message: 'so it is' }, usage: null },
})
const exhausted = { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'so it is' } }

const first = (said: unknown) => stream(event(said))
const afterBeginning = (said: unknown) => stream([...begun, event(said)].join(''))

/**
 * The vendor, the client's path, the vendor's first words, the status without another channel, and whether the key
 * rests.
 */
const cases: readonly (readonly [string, Path, string, string | Buffer, number, boolean])[] = [
  ['compatible', '/v1/chat/completions', 'rate_limit_exceeded', first(common('rate_limit_exceeded')), 429, true],
  ['compatible', '/v1/messages', 'rate_limit_exceeded', first(common('rate_limit_exceeded')), 429, true],
  ['compatible', '/v1/chat/completions', '429', first({ error: { code: 429, message: 'so it is' } }), 429, true],
  ['compatible', '/v1/chat/completions', 'overload', first(common('server_is_overloaded')), 502, false],
  ['compatible', '/v1/chat/completions', 'no credit', first(common('insufficient_quota')), 502, true],
  ['anthropic', '/v1/messages', 'rate_limit_error', first(native('rate_limit_error')), 429, true],
  ['anthropic', '/v1/chat/completions', 'rate_limit_error', first(native('rate_limit_error')), 429, true],
  ['anthropic', '/v1/messages', 'overloaded_error', first(native('overloaded_error')), 503, false],
  ['anthropic', '/v1/messages', 'billing_error', first(native('billing_error')), 502, true],
  ['openai', '/v1/responses', 'an error', first({ ...common('rate_limit_exceeded').error, type: 'error' }), 429, true],
  ['openai', '/v1/messages', 'a failed response', afterBeginning(failed('rate_limit_exceeded')), 429, true],
  ['openai', '/v1/messages', 'overload', afterBeginning(failed('slow_down')), 502, false],
  ['openai', '/v1/messages', 'no credit', afterBeginning(failed('insufficient_quota')), 502, true],
  ['google', '/v1/messages', 'RESOURCE_EXHAUSTED', first(exhausted), 429, true],
  // Asked for a stream, and answered as a whole.
  [
    'compatible',
    '/v1/chat/completions',
    'a whole error',
    answer(200, JSON.stringify(common('limit_requests'))),
    429,
    true,
  ],
]

describe.each(cases)('%s called on %s says: %s', (vendorId, path, _words, said, status, rests) => {
  test('the other channel answers, and the key rests if it has to', async () => {
    await open(vendorId, said)
    const response = await ask(path)
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('Hi')
    await (await ask(path)).text()
    expect(callsOfFirst()).toBe(rests ? 1 : 2)
    expect(await recordOf(gateway, response)).toMatchObject({ basis: 'vendor', cost: 200_000n })
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.toSorted((a, b) => a.channel.localeCompare(b.channel))).toMatchObject([
      { channel: 'first-key', delivered: false, vendor_cost: 0n },
      { channel: 'other-key', delivered: true, vendor_cost: 200_000n },
    ])
  })

  test('without another channel the client may retry, and pays nothing', async () => {
    await open(vendorId, said, ['first-key'])
    const response = await ask(path)
    expect(response.status).toBe(status)
    expect(await response.text()).not.toContain('so it is')
    expect(response.headers.has('retry-after')).toBe(status !== 502)
    expect(response.headers.get('x-should-retry')).not.toBe('false')
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  })
})

test('a rate limit in a begun responses stream reaches the client, and the next call goes elsewhere', async () => {
  await open('openai', afterBeginning(failed('rate_limit_exceeded')))
  const response = await ask('/v1/responses')
  const last = (await response.text()).trim().split('data: ').at(-1) ?? ''
  expect(JSON.parse(last)).toMatchObject({
    type: 'response.failed',
    response: { id: 'resp_1', status: 'failed', error: { code: 'rate_limit_exceeded' } },
    error: { code: 'rate_limit_exceeded', type: 'rate_limit_error' },
  })
  expect(last).not.toContain('so it is')
  expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  expect(await (await ask('/v1/responses')).text()).toContain('Hi')
  expect(callsOfFirst()).toBe(1)
})

test('the operator is told when a vendor reports in the middle of a stream that our credit ran out', async () => {
  await open(
    'anthropic',
    stream([{ type: 'message_start', message: { usage } }, native('billing_error')].map(event).join('')),
  )
  expect(await (await ask('/v1/messages')).text()).toContain('event: error')
  expect(complaints()).toHaveLength(1)
})
