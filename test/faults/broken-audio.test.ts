import { describe, expect, test } from 'bun:test'
import { gatewayForTests, until } from '../support/gateway.ts'
import { connect } from '../support/mcp.ts'
import { lastRequestOf, recordOf } from '../support/records.ts'
import { hear, say, speechPath } from '../support/speech.ts'
import { payloads } from '../support/streams.ts'
import { thrownBy } from '../support/thrown.ts'

// Speech that is sold by tokens, and whose vendor did not report its usage: the audio that was delivered is paid for.

const gateway = gatewayForTests()

const text = 'The quick brown fox jumps over the lazy dog again. '.repeat(12)
/** Tokens a second, as each vendor counts them. */
const rates = { 'gpt-4o-mini-tts': 1_250 / 60, 'gemini-2.5-flash-preview-tts': 25 } as const
type Model = keyof typeof rates

type Event = { readonly type?: string; readonly audio?: string; readonly error?: object }

/** Audio in events, up to where it ends. */
async function heard(model: Model, word: string, format: string) {
  const asked = { model, input: `${text}${word}`, response_format: format, stream_format: 'sse' }
  const response = await say(gateway, asked)
  expect(response.status).toBe(200)
  const events = payloads(await response.text()).map((event) => JSON.parse(event) as Event)
  const sound = Buffer.concat(events.map(({ audio = '' }) => Buffer.from(audio, 'base64')))
  return { sound, isBroken: events.at(-1)?.error !== undefined, record: await recordOf(gateway, response) }
}

const secondsOf = {
  pcm: (audio: Buffer) => audio.length / 48_000,
  wav: (audio: Buffer) => (audio.length - 44) / 48_000,
  // As the simulator makes it: 160 kbit/s.
  mp3: (audio: Buffer) => audio.length / 20_000,
}

describe('audio that breaks off', () => {
  test.each<[Model, keyof typeof secondsOf, string]>([
    ['gpt-4o-mini-tts', 'pcm', 'cut=1'],
    ['gpt-4o-mini-tts', 'pcm', 'eof=5'],
    ['gpt-4o-mini-tts', 'wav', 'cut=3'],
    ['gpt-4o-mini-tts', 'mp3', 'cut=2'],
    ['gemini-2.5-flash-preview-tts', 'pcm', 'cut=1'],
    ['gemini-2.5-flash-preview-tts', 'wav', 'eof=3'],
  ])('%s as %s is charged by its seconds after sandbox:%s', async (model, format, word) => {
    const { sound, isBroken, record } = await heard(model, `sandbox:${word}`, format)
    expect(isBroken).toBe(true)
    const audioOutput = Math.ceil(secondsOf[format](sound) * rates[model])
    expect(record).toMatchObject({ status: 502, basis: 'estimated', usage: { audioOutput } })
    const whole = await heard(model, 'sandbox:pace=0', format)
    expect(whole.record).toMatchObject({ status: 200, basis: 'vendor' })
    expect(record.cost * 5n).toBeLessThan(whole.record.cost)
    expect(record.cost).toBeGreaterThan(0n)
  })

  test('audio that Google ends at its token limit is broken off, and not passed on as whole', async () => {
    const { sound, isBroken, record } = await heard('gemini-2.5-flash-preview-tts', 'sandbox:finish=MAX_TOKENS', 'pcm')
    expect(isBroken).toBe(true)
    const audioOutput = Math.ceil(secondsOf.pcm(sound) * rates['gemini-2.5-flash-preview-tts'])
    expect(record).toMatchObject({ status: 502, basis: 'estimated', usage: { audioOutput } })
    expect(record.cost).toBeGreaterThan(0n)
  })

  test('audio whose duration is not known is charged by its bytes', async () => {
    const { isBroken, record } = await heard('gpt-4o-mini-tts', 'sandbox:cut=1', 'flac')
    expect(isBroken).toBe(true)
    const whole = await heard('gpt-4o-mini-tts', 'sandbox:pace=0', 'flac')
    expect(record.basis).toBe('estimated')
    expect(record.usage?.audioOutput).toBeGreaterThan(0)
    expect(record.cost).toBeLessThan(whole.record.cost)
  })

  // The first event of each: 16 KiB of samples, and a second of them.
  test.each<[Model, number]>([
    ['gpt-4o-mini-tts', 8],
    ['gemini-2.5-flash-preview-tts', 25],
  ])('%s is charged by its seconds when the client leaves', async (model, audioOutput) => {
    const { id, key } = await gateway.account()
    const abort = new AbortController()
    const response = await fetch(gateway.url + speechPath, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, input: `${text}sandbox:pace=60000`, response_format: 'pcm' }),
      signal: abort.signal,
    })
    await response.body?.getReader().read()
    abort.abort()
    await until(async () => (await lastRequestOf(gateway, id)) !== undefined)
    expect(await lastRequestOf(gateway, id)).toMatchObject({ status: 499, basis: 'estimated', usage: { audioOutput } })
  })
})

describe('audio that breaks off in a tool call', () => {
  test.each<[Model | 'speech-2.6-turbo', string]>([
    ['gpt-4o-mini-tts', 'cut=3'],
    ['speech-2.6-turbo', 'cut=3'],
  ])('%s is returned as far as it came, with the error, and charged', async (model, word) => {
    const client = await connect(gateway, 'modern')
    const result = await client.call('speak', { model, input: `${text}sandbox:${word}` })
    expect(result.isError).toBe(true)
    const [audio, ...rest] = result.content
    expect(audio).toMatchObject({ type: 'audio', mimeType: 'audio/mpeg' })
    expect(Buffer.from(audio?.data ?? '', 'base64').length).toBeGreaterThan(0)
    expect(JSON.parse(rest.at(-1)?.text ?? '')).toMatchObject({ error: { code: 'upstream_failed' } })
    const record = await recordOf(gateway, String(result._meta?.['turnpike/request_id']))
    expect(record).toMatchObject({ status: 502, basis: 'estimated' })
    expect(record.cost).toBeGreaterThan(0n)
    await client.close()
  })

  test('a client that cancels it is charged for what was made, and the call ends', async () => {
    const { id, key } = await gateway.account()
    const client = await connect(gateway, 'modern', { key })
    const abort = new AbortController()
    const call = client.call(
      'speak',
      { model: 'gpt-4o-mini-tts', input: `${text}sandbox:pace=60000`, response_format: 'pcm' },
      { signal: abort.signal },
    )
    await until(() => gateway.openHolds() === 1)
    abort.abort()
    await thrownBy(call)
    await until(() => gateway.openHolds() === 0)
    expect(await lastRequestOf(gateway, id)).toMatchObject({ status: 499 })
    await client.close()
  })
})

describe('whole audio without usage', () => {
  test.each<[Model, string]>([
    ['gpt-4o-mini-tts', 'pcm'],
    ['gpt-4o-mini-tts', 'wav'],
    ['gpt-4o-mini-tts', 'mp3'],
    ['gemini-2.5-flash-preview-tts', 'mp3'],
  ])('%s as %s is charged by its seconds', async (model, format) => {
    const untold = await hear(gateway, { model, input: `${text}sandbox:nousage`, response_format: format })
    const told = await hear(gateway, { model, input: `${text}sandbox:pace=0`, response_format: format })
    const counted = (await recordOf(gateway, told.response)).usage?.audioOutput ?? 0
    const { basis, usage } = await recordOf(gateway, untold.response)
    expect(basis).toBe('estimated')
    expect(Math.abs((usage?.audioOutput ?? 0) - counted)).toBeLessThanOrEqual(1)
  })
})
