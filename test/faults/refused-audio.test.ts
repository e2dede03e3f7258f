import { afterEach, describe, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { say } from '../support/speech.ts'
import { answer, event, startVendor, stream, type RawVendor } from '../support/vendor.ts'

// A vendor of speech that refuses a key in words of its own: the key rests, and the other channel speaks.

let gateway: TestGateway
let vendor: RawVendor
afterEach(async () => {
  await gateway.assertBooks()
  await gateway.close()
  await vendor.stop()
})

const base = (code: number) => ({ base_resp: { status_code: code, status_msg: 'so it is' } })

type Shop = {
  readonly model: string
  readonly refusal: string
  readonly sound: string | Buffer
  readonly isKeys: boolean
}

const minimax = (code: number, isKeys: boolean): Shop => ({
  model: 'speech-2.6-hd',
  refusal: answer(200, JSON.stringify({ trace_id: 't', ...base(code) })),
  sound: stream(
    event({ data: { audio: 'fff3e4c4', status: 1 }, ...base(0) }) +
      event({ data: { audio: '', status: 2 }, extra_info: { usage_characters: 12 }, ...base(0) }),
  ),
  isKeys,
})

const elevenlabs = (status: number, word: string, isKeys: boolean): Shop => ({
  model: 'eleven-multilingual-v2',
  refusal: answer(status, JSON.stringify({ detail: { status: word, message: 'so it is' } })),
  sound: Buffer.from(answer(200, '\xff\xf3\xe4\xc4', audioHeaders), 'latin1'),
  isKeys,
})
const audioHeaders = { 'content-type': 'audio/mpeg', 'content-length': '4', 'character-cost': '12' }

const shops: readonly [string, string, Shop][] = [
  ['minimax', 'a refused key', minimax(1004, true)],
  ['minimax', 'an empty account', minimax(1008, true)],
  ['minimax', 'a key over its rate', minimax(1002, false)],
  ['elevenlabs', 'a refused key', elevenlabs(401, 'invalid_api_key', true)],
  ['elevenlabs', 'an empty account', elevenlabs(401, 'quota_exceeded', true)],
  ['elevenlabs', 'a key over its rate', elevenlabs(429, 'too_many_concurrent_requests', false)],
]

/** Two channels at one vendor, which refuses the first key. */
async function open(vendorId: string, { refusal, sound }: Shop): Promise<void> {
  vendor = await startVendor((socket, { head }) => {
    socket.write(head.includes('first-key') ? refusal : sound)
  })
  const baseUrl = vendorId === 'elevenlabs' ? vendor.origin : vendor.baseUrl
  gateway = await startTestGateway({
    yaml: `
sandbox: false
channels:
  - { id: main, vendor: ${vendorId}, baseUrl: "${baseUrl}", keys: ["first-key"] }
  - { id: spare, vendor: ${vendorId}, baseUrl: "${baseUrl}", keys: ["other-key"], priority: 1 }
`,
  })
}

describe.each(shops)('%s: %s', (vendorId, _, shop) => {
  test('the other channel speaks, and a refused key is logged and rests', async () => {
    await open(vendorId, shop)
    const response = await say(gateway, { model: shop.model })
    expect(response.status).toBe(200)
    expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([0xff, 0xf3, 0xe4, 0xc4])
    expect(await recordOf(gateway, response)).toMatchObject({ status: 200, basis: 'vendor', usage: { character: 12 } })
    expect(await attemptsOf(gateway, response)).toMatchObject([
      { channel: 'main', delivered: false, vendor_cost: 0n },
      { channel: 'spare', delivered: true },
    ])
    const complaints = gateway.logged.filter((line) => line.includes('a vendor refuses a key'))
    expect(complaints).toHaveLength(shop.isKeys ? 1 : 0)
    // Over its rate it rests for a second, which may be over by now.
    if (!shop.isKeys) return
    await (await say(gateway, { model: shop.model })).arrayBuffer()
    expect(vendor.requests.filter(({ head }) => head.includes('first-key'))).toHaveLength(1)
  })
})
