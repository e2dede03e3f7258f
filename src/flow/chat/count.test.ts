import { describe, expect, test } from 'bun:test'
import { scriptedExchange } from '../../../test/support/scripted-exchange.ts'
import { systemClock } from '../../base/clock.ts'
import { GatewayError } from '../../base/errors.ts'
import { newRequestId } from '../../base/ids.ts'
import { silentLog } from '../../base/log.ts'
import type { Model } from '../../catalogue/model.ts'
import { makeLimiter } from '../../limits/limiter.ts'
import { makeChannels, type Channel } from '../../upstream/channels.ts'
import { anthropic } from '../../vendors/anthropic/anthropic.ts'
import { compatible } from '../../vendors/compatible/compatible.ts'
import { anthropicCount } from '../../wire/anthropic/chat.ts'
import { makeCount, type Asking, type CountParts } from './count.ts'

const body = { model: 'm', messages: [{ role: 'user', content: 'Hello!' }] }
const model = {
  id: 'm',
  capabilities: ['chat'],
  offers: ['anthropic', 'v'].map((vendor) => ({ vendor, upstreamModel: 'theirs' })),
}
const channel: Channel = {
  id: 'c',
  vendor: anthropic,
  baseUrl: 'https://v',
  credentials: ['k'],
  weight: 1,
  priority: 0,
}
const translated: Channel = { ...channel, id: 'd', vendor: compatible({ id: 'v', baseUrl: 'https://w' }), priority: 1 }
const timeouts = { connectMs: 1, firstByteMs: 1, idleMs: 1, totalMs: 1 }

/** A count that the vendor answers like this: what the client gets, what the operator reads, whether the key rests. */
async function countWith(
  status: number,
  answer: string,
  more: object = {},
  { baseUrl = 'https://v', isOverRate = false } = {},
) {
  const warned: unknown[] = []
  const channels = makeChannels([{ ...channel, baseUrl }, translated], systemClock, () => 0)
  if (isOverRate) channels.rest({ channel, credential: 'k', upstreamModel: 'theirs' }, 60)
  const exchange = scriptedExchange(status, [answer])
  const parts: CountParts = {
    transport: { send: async () => ({ kind: 'response', exchange }) } as unknown as CountParts['transport'],
    channels: () => channels,
    timeouts: { stream: timeouts, whole: timeouts },
    tenantLabel: (text) => text,
    log: { ...silentLog, warn: (fields) => warned.push(fields) },
    once: (_limited, walk) => walk(),
    authenticate: async () => ({ keyId: 'key', accountId: 'acc', limits: null, caps: [], mayUse: () => true }),
    limiter: makeLimiter(systemClock),
    models: () =>
      new Map([['m', { ...model, contextTokens: 1_000, prices: { rates: {}, perVideo: {} } } as unknown as Model]]),
  }
  const asking = {
    requestId: newRequestId(),
    codec: anthropicCount,
    signal: new AbortController().signal,
    receivedAt: 0,
    elapsedMs: () => 0,
    setHeader() {},
    header: () => null,
    readBody: async () => ({ body: { ...body, ...more }, files: [], raw: new Uint8Array(), bytes: 100 }),
  } as unknown as Asking
  const counted = await makeCount(parts)(asking)
    .then((answer) => new Response(answer.body as BodyInit).json())
    .then(({ input_tokens: tokens }: { input_tokens: number }) => tokens)
    .catch((thrown: unknown) => thrown)
  return { counted, warned, rests: channels.isResting({ channel, credential: 'k' }) }
}

const refusal = (type: string) => JSON.stringify({ type: 'error', error: { type, message: 'No.' } })
const ours = expect.any(Number)

describe('the count of a prompt', () => {
  test("the count is the vendor's when it gives one", async () => {
    expect(await countWith(200, '{"input_tokens":12}')).toEqual({ counted: 12, warned: [], rests: false })
  })

  test.each([
    // A refused key is of no use for answers either, but the limit on counting does not limit answers.
    [401, refusal('authentication_error'), true],
    [403, refusal('permission_error'), true],
    [429, refusal('rate_limit_error'), false],
    [500, '', false],
    [200, '<html>', false],
    [200, '{"input_tokens":null}', false],
  ])('our estimate is used when the vendor answers %d %s, and a warning is logged', async (status, answer, rests) => {
    const result = await countWith(status, answer)
    expect(result).toMatchObject({ counted: ours, rests })
    expect(result.warned).toMatchObject([{ channel: 'c', model: 'm', status }])
  })

  test.each([
    ['a vendor on the internet counts', 'https://api.example.com', true],
    ['a server on our own network is not asked', 'http://10.0.0.5:4000', false],
  ])('a prompt with a link: %s', async (_what, baseUrl, isTheirs) => {
    const image = { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }
    const linked = { messages: [{ role: 'user', content: [image] }] }
    const { counted } = await countWith(200, '{"input_tokens":12}', linked, { baseUrl })
    expect(counted).toEqual(ours)
    expect(counted === 12).toBe(isTheirs)
  })

  test.each([
    ['fails', {}],
    ['is over its rate', { isOverRate: true }],
  ])(
    'a prompt that only a vendor of this protocol can run gets our estimate when the vendor %s',
    async (_when, how) => {
      const mcp = { mcp_servers: [{ type: 'url', url: 'https://h/mcp', name: 'h' }] }
      const { counted } = await countWith(500, '', mcp, how)
      expect(counted).toEqual(ours)
    },
  )

  test('a prompt that the vendor rejects with a 400 is refused', async () => {
    const { counted, warned } = await countWith(400, refusal('invalid_request_error'))
    expect(counted).toBeInstanceOf(GatewayError)
    expect([counted, warned]).toMatchObject([{ kind: 'upstream-rejected' }, []])
  })
})
