import { describe, expect, test } from 'bun:test'
import { formatDollars } from '../../src/base/money.ts'
import { gatewayForTests, type SeenCall } from '../support/gateway.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { billedFor, expectMp3, hear, say, wavOf } from '../support/speech.ts'
import { errorOf } from '../support/streams.ts'

// Speech of the vendors whose voices are ids of the account: the rules of `speech.test.ts`, and where they differ.

const gateway = gatewayForTests()

const refused = (body: Record<string, unknown>) =>
  refusedForFree(gateway, async () => errorOf(await say(gateway, body)))
/** Refused by the vendor itself, after one call, at no charge. */
async function refusedThere(body: Record<string, unknown>) {
  const before = await gateway.callCount()
  const response = await say(gateway, body)
  expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  expect(await gateway.callCount()).toBe(before + 1)
  return errorOf(response)
}
const lastCall = async () => (await gateway.calls()).at(-1)

/** How each vendor is asked for a voice and a speed, and what it refuses. */
const vendors = {
  minimax: {
    model: 'speech-2.6-hd',
    voiceDefault: 'English_expressive_narrator',
    voiceOwn: 'Chinese (Mandarin)_Warm_Bestie',
    voiceNone: 'Nobody',
    said: 'voice id not exist',
    askedOf: ({ body }: SeenCall): unknown => body['voice_setting'],
    asked: (voice: string, speed?: number) => ({ voice_id: voice, ...(speed !== undefined && { speed }) }),
    moderated: '1026',
    moderatedSays: 'input is sensitive',
    charactersMax: 9_999,
  },
  elevenlabs: {
    model: 'eleven-multilingual-v2',
    voiceDefault: 'JBFqnCBsd6RMkjVDRZzb',
    voiceOwn: '21m00Tcm4TlvDq8ikWAM',
    voiceNone: 'Nobody',
    said: 'was not found',
    askedOf: ({ path, body }: SeenCall): unknown => [path.split('/').at(-2), body['voice_settings']],
    asked: (voice: string, speed?: number) => [voice, speed === undefined ? undefined : { speed }],
    moderated: 'content_policy_violation',
    moderatedSays: 'The text violates the terms of use.',
    charactersMax: 10_000,
  },
} as const

describe.each(Object.entries(vendors))('%s', (vendor, it) => {
  const { model } = it

  test('a missing, empty or common voice means the default voice', async () => {
    for (const voice of [undefined, null, '', 'alloy', 'cedar']) {
      await hear(gateway, { model, voice })
      expect(it.askedOf((await lastCall()) ?? never())).toEqual(it.asked(it.voiceDefault))
    }
  })

  test('the account’s own voice is used, at the requested speed', async () => {
    const { sound: plain } = await hear(gateway, { model, response_format: 'wav' })
    const { sound } = await hear(gateway, { model, voice: it.voiceOwn, speed: 1.2, response_format: 'wav' })
    expect(it.askedOf((await lastCall()) ?? never())).toEqual(it.asked(it.voiceOwn, 1.2))
    expect(sound.length).toBeLessThan(plain.length)
  })

  test('a voice that the vendor does not know is a 400 and is not retried', async () => {
    const error = await refusedThere({ model, voice: it.voiceNone })
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
    expect(error.message).toContain(it.said)
  })

  test('instructions, aac and a speed out of range are refused', async () => {
    expect(await refused({ model, instructions: 'slowly' })).toMatchObject({ status: 400, param: 'instructions' })
    expect(await refused({ model, response_format: 'aac' })).toMatchObject({ status: 400, param: 'response_format' })
    expect(await refusedThere({ model, speed: 4 })).toMatchObject({ status: 400 })
  })

  test('mp3, wav and pcm are returned, the last two with the same samples', async () => {
    expectMp3((await hear(gateway, { model })).sound)
    const { sound } = await hear(gateway, { model, response_format: 'wav' })
    expect(wavOf(sound)).toMatchObject({ rate: 24_000, channels: 1 })
    const { sound: bare, type } = await hear(gateway, { model, response_format: 'pcm' })
    expect(type).toBe('audio/pcm')
    expect(bare.equals(sound.subarray(44))).toBe(true)
  })

  test.each(['mp3', 'wav'])('the charge for %s equals the vendor’s bill', async (response_format) => {
    const { response } = await hear(gateway, { model, input: 'Grüße, Welt! 👋🏽', response_format })
    const { usage, cost, basis } = await recordOf(gateway, response)
    const [line] = await billedFor(gateway, response)
    expect({ usage, basis }).toMatchObject({ usage: { character: 15 }, basis: 'vendor' })
    expect(line?.cost).toBe(formatDollars(cost))
  })

  test('a text without sentences is split at the vendor’s character limit, and its audio is joined', async () => {
    const input = 'a'.repeat(it.charactersMax + 1)
    const { response, sound } = await hear(gateway, { model, input })
    const bill = await billedFor(gateway, response)
    expect(bill.map(({ units }) => units['characters'])).toEqual([it.charactersMax, 1])
    expect(await recordOf(gateway, response)).toMatchObject({ usage: { character: input.length }, basis: 'vendor' })
    const alone: Buffer[] = []
    for (const text of [input.slice(1), 'a']) alone.push((await hear(gateway, { model, input: text })).sound)
    expect(sound.equals(Buffer.concat(alone))).toBe(true)
  })

  test('text that moderation refuses is a 400 in the vendor’s own words and costs nothing', async () => {
    const error = await refusedThere({ model, input: `Hello sandbox:fail=${it.moderated}` })
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', message: it.moderatedSays })
  })

  test.each([
    [401, 502],
    [402, 502],
    [429, 429],
    [500, 502],
  ])('a %d from the vendor is a %d for the client and costs nothing', async (status, shown) => {
    const response = await say(gateway, { model, input: `Hello sandbox:status=${status}` })
    expect((await errorOf(response)).status).toBe(shown)
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  })

  test('a credential in the vendor’s error reaches neither the client nor the log', async () => {
    const response = await say(gateway, { model, input: 'Hello sandbox:leak' })
    const text = await response.text()
    const { headers = {} } = (await lastCall()) ?? {}
    const key = (headers['authorization'] ?? headers['xi-api-key'] ?? never()).replace('Bearer ', '')
    expect([response.status, text.includes(key), gateway.logged.join('').includes(key)]).toEqual([502, false, false])
  })

  test('audio is streamed while it is being made', async () => {
    const response = await say(gateway, { model, input: `${'A longer sentence. '.repeat(4)} sandbox:pace=50` })
    const reader = response.body?.getReader()
    expect((await reader?.read())?.value?.length).toBeGreaterThan(0)
    expect(gateway.openHolds()).toBe(1)
    while (!(await reader?.read())?.done);
    const attempts = await attemptsOf(gateway, response)
    expect(attempts).toMatchObject([{ status: 200, delivered: true, channel: expect.stringContaining(vendor) }])
  })
})

test('an ElevenLabs voice that would change the path of the call is refused', async () => {
  for (const voice of ['..', '.', 'a/../../user', 'a?b=c', 'a#b', '%2e%2e', 'a b']) {
    const error = await refused({ model: 'eleven-multilingual-v2', voice })
    expect(error).toMatchObject({ status: 400, param: 'voice', code: 'unsupported_value' })
  }
})

test('a Han character counts twice in MiniMax’s cost and once in the charge', async () => {
  const { response } = await hear(gateway, { model: 'speech-2.6-turbo', input: '你好, Bob' })
  const { usage, cost } = await recordOf(gateway, response)
  expect([usage?.character, formatDollars(cost)]).toEqual([7, '0.00042'])
  const [attempt] = await attemptsOf(gateway, response)
  expect(formatDollars(attempt?.vendor_cost ?? cost)).toBe('0.00054')
})

test('MiniMax gives flac of a short text, and flac of a long text is refused', async () => {
  const { sound } = await hear(gateway, { model: 'speech-2.6-hd', response_format: 'flac' })
  expect(sound.toString('latin1', 0, 4)).toBe('fLaC')
  const input = 'One sentence. '.repeat(800)
  expect(await refused({ model: 'speech-2.6-hd', input, response_format: 'flac' })).toMatchObject({ status: 400 })
})

function never(): never {
  throw new Error('nobody was asked')
}
