import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { formatDollars, nano } from '../../src/base/money.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { attemptsOf, lastRequestOf, recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { errorOf, payloads } from '../support/streams.ts'

// `POST /v1/audio/speech`, row by row of the specification.

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway()
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const path = '/v1/audio/speech'
const basic = 'qwen3-tts-flash'
const instruct = 'qwen3-tts-instruct-flash'
const common = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts']
const every = [basic, instruct, ...common, 'gemini-2.5-flash-preview-tts']

const say = (body: Record<string, unknown>, key = gateway.key) =>
  gateway.post(path, { model: basic, input: 'Hello there.', ...body }, { authorization: `Bearer ${key}` })

async function heard(body: Record<string, unknown>) {
  const response = await say(body)
  expect(response.status).toBe(200)
  const sound = Buffer.from(await response.arrayBuffer())
  return { response, sound, type: response.headers.get('content-type') }
}

const refused = (body: Record<string, unknown>) => refusedForFree(gateway, async () => errorOf(await say(body)))

const lastCall = async () => (await gateway.calls()).at(-1)
const lastInput = async () => (await lastCall())?.body['input'] as Record<string, unknown>

/** The lengths that a wav says of itself, and those that it has. */
function wavOf(sound: Buffer) {
  expect(sound.toString('latin1', 0, 4) + sound.toString('latin1', 8, 16)).toBe('RIFFWAVEfmt ')
  expect(sound.toString('latin1', 36, 40)).toBe('data')
  expect(sound.readUInt32LE(4)).toBe(sound.length - 8)
  expect(sound.readUInt32LE(40)).toBe(sound.length - 44)
  const seconds = (sound.length - 44) / sound.readUInt32LE(28)
  return { rate: sound.readUInt32LE(24), channels: sound.readUInt16LE(22), seconds }
}

function expectMp3(sound: Buffer): void {
  expect([sound[0], (sound[1] ?? 0) & 0xe0]).toEqual([0xff, 0xe0])
}

async function billedFor(response: Response) {
  const refs = new Set((await attemptsOf(gateway, response)).map(({ id }) => id))
  return (await gateway.bill()).filter(({ ref }) => refs.has(ref))
}

describe('model', () => {
  test.each(every)('%s speaks', async (model) => {
    const { response, sound } = await heard({ model })
    expect(sound.length).toBeGreaterThan(1_000)
    expect(await recordOf(gateway, response)).toMatchObject({
      status: 200,
      basis: 'vendor',
      capability: 'speech',
      model,
    })
  })

  test.each([
    [{ model: undefined }, 'missing_required_parameter'],
    [{ model: 'no-such-model' }, 'endpoint_model_mismatch'],
    [{ model: 'gpt-4o-mini' }, 'endpoint_model_mismatch'],
    [{ model: 'text-embedding-v4' }, 'endpoint_model_mismatch'],
  ])('%j is refused', async (body, code) => {
    expect(await refused(body)).toMatchObject({ status: 400, type: 'invalid_request_error', code, param: 'model' })
  })

  test('one that the key may not use looks like none at all', async () => {
    const { key } = await gateway.account({ models: ['gpt-*'] })
    const [forbidden, unknown] = await Promise.all([say({ model: 'tts-1' }, key), say({ model: 'tts-9' }, key)])
    expect([forbidden.status, unknown.status]).toEqual([400, 400])
    expect((await forbidden.text()).replace('tts-1', 'tts-9')).toBe(await unknown.text())
  })
})

describe('input', () => {
  test.each([
    ['Hello', 5],
    ['Grüße, 世界! 👋🏽', 13],
    ['👨‍👩‍👧', 5],
  ])('%s is billed as %d characters, by code points', async (input, characters) => {
    const before = await gateway.balance()
    const { response } = await heard({ model: 'tts-1', input })
    const { usage, cost } = await recordOf(gateway, response)
    expect(usage).toMatchObject({ character: characters })
    // 15 dollars a million.
    expect(cost).toBe(nano(BigInt(characters) * 15_000n))
    expect(before.posted - (await gateway.balance()).posted).toBe(cost)
    const [line] = await billedFor(response)
    expect(line?.cost).toBe(formatDollars(cost))
  })

  test('a vendor that counts a Han character twice is paid for it, and the customer pays once', async () => {
    const { response } = await heard({ input: '你好, Bob' })
    const { usage, cost } = await recordOf(gateway, response)
    expect(usage).toMatchObject({ character: 7 })
    expect(formatDollars(cost)).toBe('0.00007')
    const [attempt] = await attemptsOf(gateway, response)
    expect(formatDollars(attempt?.vendor_cost ?? cost)).toBe('0.00009')
  })

  test.each([
    [undefined, 'missing_required_parameter'],
    ['', 'invalid_value'],
    ['  \n ', 'empty_string'],
    [5, 'invalid_type'],
    ['x'.repeat(65_537), 'string_above_max_length'],
  ])('%# is refused', async (input, code) => {
    expect(await refused({ input })).toMatchObject({ status: 400, type: 'invalid_request_error', code, param: 'input' })
  })

  test('beyond the model’s limit it is split at sentence ends, and joined', async () => {
    const input = 'Every sentence is said once. '.repeat(80)
    const { sound, response } = await heard({ input, response_format: 'wav' })
    const bill = await billedFor(response)
    expect(bill.map(({ units }) => units['characters'])).toEqual([580, 580, 580, 580])
    expect(await recordOf(gateway, response)).toMatchObject({ usage: { character: 2_320 }, basis: 'vendor' })
    const said = (await gateway.calls()).slice(-4).map(({ body }) => (body['input'] as { text: string }).text)
    expect(said.join('')).toBe(input)
    expect(said.every((text) => text.endsWith('. '))).toBe(true)
    // The simulator says 1,000 characters a minute.
    expect(wavOf(sound)).toMatchObject({ rate: 24_000, channels: 1 })
    expect(wavOf(sound).seconds).toBeCloseTo((4 * 579 * 60) / 1_000, 1)
    const { sound: mp3 } = await heard({ input })
    expectMp3(mp3)
    // 96 kbit/s.
    expect(mp3.length / 12_000).toBeCloseTo(wavOf(sound).seconds, 0)
  })

  test.each(['mp3', 'aac', 'opus', 'pcm'])(
    'a long text of a vendor’s own %s is joined too',
    async (response_format) => {
      const { response } = await heard({ model: 'tts-1', input: 'One sentence. '.repeat(400), response_format })
      expect(await billedFor(response)).toHaveLength(2)
    },
  )

  test('but not as flac, which has no joints', async () => {
    const error = await refused({ model: 'tts-1', input: 'One sentence. '.repeat(400), response_format: 'flac' })
    expect(error).toMatchObject({ status: 400, param: 'response_format', code: 'unsupported_value' })
  })
})

describe('voice', () => {
  test('missing is the default voice', async () => {
    await heard({})
    expect(await lastInput()).toMatchObject({ voice: 'Cherry' })
    await heard({ voice: null })
    expect(await lastInput()).toMatchObject({ voice: 'Cherry' })
  })

  test.each('alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar'.split(' '))(
    'the common protocol’s %s falls back to the default voice',
    async (voice) => {
      await heard({ voice })
      expect(await lastInput()).toMatchObject({ voice: 'Cherry' })
    },
  )

  test.each(['Ethan', 'Eldric Sage', 'Radio Gol'])('%s is the model’s own', async (voice) => {
    await heard({ voice })
    expect(await lastInput()).toMatchObject({ voice })
  })

  test('an object with an id is a voice too', async () => {
    await heard({ voice: { id: 'Ethan' } })
    expect(await lastInput()).toMatchObject({ voice: 'Ethan' })
  })

  test.each([
    [basic, 'Nobody'],
    [basic, 'cherry'],
    [instruct, 'Radio Gol'],
    ['tts-1', 'Cherry'],
    ['gemini-2.5-flash-preview-tts', 'Cherry'],
  ])('%s has no %s', async (model, voice) => {
    expect(await refused({ model, voice })).toMatchObject({
      status: 400,
      param: 'voice',
      type: 'invalid_request_error',
    })
  })

  test('tts-1 has no verse, which is a voice of the common protocol', async () => {
    await heard({ model: 'tts-1', voice: 'verse' })
    expect((await lastCall())?.body).toMatchObject({ voice: 'alloy' })
  })
})

describe('response_format', () => {
  test.each(every)('%s gives mp3 where nothing is said', async (model) => {
    const { type, sound } = await heard({ model })
    if (model === instruct) return expect(type).toBe('audio/wav')
    expect(type).toBe('audio/mpeg')
    expectMp3(sound)
  })

  test.each(every)('%s gives wav', async (model) => {
    const { type, sound, response } = await heard({ model, response_format: 'wav' })
    expect(type).toBe('audio/wav')
    expect(wavOf(sound)).toMatchObject({ rate: 24_000, channels: 1 })
    expect(response.headers.get('x-turnpike-cost')).toBe(formatDollars((await recordOf(gateway, response)).cost))
  })

  test('the instruct model does not accept this field upstream and outputs wav', async () => {
    const { type, sound } = await heard({ model: instruct, response_format: 'mp3' })
    expect(type).toBe('audio/wav')
    wavOf(sound)
    expect(JSON.stringify((await lastCall())?.body)).not.toContain('format')
  })

  test.each([
    ['opus', 'audio/opus', 'OggS'],
    ['flac', 'audio/flac', 'fLaC'],
    ['aac', 'audio/aac', '\xff\xf1'],
    ['pcm', 'audio/pcm', '\0\0'],
  ])('OpenAI’s models give %s too', async (response_format, type, start) => {
    const made = await heard({ model: 'tts-1', response_format })
    expect(made.type).toBe(type)
    expect(made.sound.toString('latin1')).toStartWith(start)
  })

  test.each([
    [basic, 'opus', 'mp3, wav'],
    [instruct, 'flac', 'mp3, wav'],
    ['gemini-2.5-flash-preview-tts', 'aac', 'mp3, wav, pcm'],
    ['tts-1', 'ogg', 'mp3, wav, opus, aac, flac, pcm'],
  ])('%s gives no %s, and says what it gives', async (model, response_format, list) => {
    const error = await refused({ model, response_format })
    expect(error).toMatchObject({ status: 400, param: 'response_format', code: 'unsupported_value' })
    expect(error.message).toContain(list)
  })
})

describe('instructions', () => {
  test('go to the instruct model', async () => {
    await heard({ model: instruct, instructions: 'fast, rising tone' })
    expect(await lastInput()).toMatchObject({ instructions: 'fast, rising tone' })
    await heard({ model: 'gpt-4o-mini-tts', instructions: 'whisper' })
    expect((await lastCall())?.body).toMatchObject({ instructions: 'whisper' })
  })

  test.each([basic, 'tts-1', 'tts-1-hd'])('are refused on %s', async (model) => {
    expect(await refused({ model, instructions: 'slowly' })).toMatchObject({ status: 400, param: 'instructions' })
  })
})

describe('speed', () => {
  test.each([0.25, 1, 4, 17])('%d is accepted and has no effect where the vendor has none', async (speed) => {
    const plain = await heard({ response_format: 'wav' })
    const { sound } = await heard({ speed, response_format: 'wav' })
    expect(sound.equals(plain.sound)).toBe(true)
    expect(JSON.stringify((await lastCall())?.body)).not.toContain('speed')
  })

  test('passes on where the vendor has it', async () => {
    const { sound: slow } = await heard({ model: 'tts-1', speed: 0.5, response_format: 'wav' })
    const { sound: fast } = await heard({ model: 'tts-1', speed: 2, response_format: 'wav' })
    expect(slow.length).toBeGreaterThan(2 * fast.length)
  })

  test('what is no number is refused', async () => {
    expect(await refused({ speed: 'fast' })).toMatchObject({ status: 400, param: 'speed', code: 'invalid_type' })
  })
})

describe('response 400: the upstream error passed through unchanged', () => {
  test.each([
    [basic, 'InvalidParameter', 'Required parameter(s) missing or invalid, please check the request parameters.'],
    [basic, 'DataInspectionFailed', 'Input or output data may contain inappropriate content.'],
  ])('%s: %s', async (model, code, message) => {
    const response = await say({ model, input: `Hello sandbox:fail=${code}` })
    expect(await errorOf(response)).toMatchObject({ status: 400, type: 'invalid_request_error', message })
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n, status: 400 })
  })

  test('OpenAI’s refusal is its own body', async () => {
    const response = await say({ model: 'tts-1', speed: 17 })
    expect(await errorOf(response)).toMatchObject({ status: 400, param: 'speed' })
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  })
})

describe('response 402', () => {
  test.each([basic, 'gpt-4o-mini-tts'])('%s: a message and nothing else', async (model) => {
    const { key } = await gateway.account({ dollars: '0' })
    const response = await refusedForFree(gateway, () => say({ model }, key))
    expect(response.status).toBe(402)
    const body = (await response.json()) as { error: Record<string, unknown> }
    expect(Object.keys(body)).toEqual(['error'])
    expect(Object.keys(body.error)).toEqual(['message'])
    expect(response.headers.get('x-should-retry')).toBe('false')
  })
})

describe('models billed by tokens report what they used', () => {
  test.each([['gpt-4o-mini-tts'], ['gemini-2.5-flash-preview-tts']])('%s', async (model) => {
    for (const response_format of ['mp3', 'wav']) {
      const { response } = await heard({ model, input: 'Hello there, how are you?', response_format })
      const { usage, basis, cost } = await recordOf(gateway, response)
      const [line] = await billedFor(response)
      expect(basis).toBe('vendor')
      expect(usage).toMatchObject({ input: line?.units['input'] ?? -1, audioOutput: line?.units['audioOutput'] ?? -1 })
      expect(formatDollars(cost)).toBe(line?.cost ?? '')
    }
  })

  test.each(every)('%s: with `stream_format` sse the sound comes as events, and its usage', async (model) => {
    const { response, sound, type } = await heard({ model, stream_format: 'sse' })
    expect(type).toBe('text/event-stream; charset=utf-8')
    const events = payloads(sound.toString()).map((text) => JSON.parse(text) as { type: string; audio?: string })
    const deltas = events.slice(0, -1)
    expect(deltas.every((event) => event.type === 'speech.audio.delta')).toBe(true)
    const joined = Buffer.concat(deltas.map(({ audio = '' }) => Buffer.from(audio, 'base64')))
    if (model === instruct) expect(joined.toString('latin1', 0, 4)).toBe('RIFF')
    else expectMp3(joined)
    const { usage } = await recordOf(gateway, response)
    const total = (usage?.input ?? 0) + (usage?.audioOutput ?? 0)
    expect(events.at(-1)).toMatchObject({ type: 'speech.audio.done', usage: { total_tokens: total } })
  })
})

describe('sound is sent as it is made', () => {
  test.each([basic, 'tts-1', 'gemini-2.5-flash-preview-tts'])(
    '%s: the first of it comes long before the last',
    async (model) => {
      const response = await say({ model, input: `${'A longer sentence. '.repeat(4)} sandbox:pace=50` })
      const reader = response.body?.getReader()
      const first = await reader?.read()
      expect(first?.value?.length).toBeGreaterThan(0)
      expect(gateway.openHolds()).toBe(1)
      while (!(await reader?.read())?.done);
      expect(await recordOf(gateway, response)).toMatchObject({ status: 200, basis: 'vendor', streamed: true })
    },
  )

  test('a stream that breaks off is cut off, not closed, and the characters are paid', async () => {
    const response = await say({ input: `${'A longer sentence. '.repeat(20)} sandbox:pace=20 sandbox:cut=3` })
    expect(response.status).toBe(200)
    const failure: unknown = await response.arrayBuffer().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Error)
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ status: 502, basis: 'estimated', usage: { character: 410 } })
    expect(record.cost).toBeGreaterThan(0n)
  })

  test('as events it ends with an error', async () => {
    const response = await say({
      input: `${'A longer sentence. '.repeat(20)} sandbox:pace=20 sandbox:cut=3`,
      stream_format: 'sse',
    })
    const events = payloads(await response.text())
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { type: 'upstream_error' } })
    expect(events.join('')).not.toContain('speech.audio.done')
  })

  test('a wav that breaks off is an error, and free', async () => {
    const response = await say({ input: 'A longer sentence. sandbox:cut=3', response_format: 'wav' })
    expect(await errorOf(response)).toMatchObject({ status: 502 })
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  })

  test.each(['sandbox:status=500', 'sandbox:html', 'sandbox:error200', 'sandbox:cut=0'])(
    '%s before any of it is an ordinary error, and free',
    async (word) => {
      for (const model of [basic, 'tts-1', 'gpt-4o-mini-tts', 'gemini-2.5-flash-preview-tts']) {
        const response = await say({ model, input: `Hello ${word}` })
        expect((await errorOf(response)).status).toBe(502)
        expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
      }
    },
  )

  test('a later part that fails is said again, and what was heard before is paid where it stays failed', async () => {
    const sentence = 'Every sentence is said once. '
    const response = await say({ input: `${sentence.repeat(25)}sandbox:status=500 ${sentence}` })
    expect(response.status).toBe(200)
    expect(await response.arrayBuffer().catch(() => 'cut off')).toBe('cut off')
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 500, 500, 500])
    expect(await recordOf(gateway, response)).toMatchObject({ status: 502, usage: { character: 580 } })
  })

  test('a client that leaves pays for the part it heard, and no further one is begun', async () => {
    const account = await gateway.account()
    const abort = new AbortController()
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: basic, input: `${'A longer sentence. '.repeat(60)}sandbox:pace=50` }),
      signal: abort.signal,
    })
    await response.body?.getReader().read()
    abort.abort()
    await until(() => gateway.openHolds() === 0)
    const record = await lastRequestOf(gateway, account.id)
    expect(record).toMatchObject({ status: 499, usage: { character: 589 } })
    expect(record?.cost).toBe(nano(5_890_000n))
  })

  test('usage that is not told is estimated, and marked', async () => {
    for (const model of [basic, 'gpt-4o-mini-tts', 'gemini-2.5-flash-preview-tts']) {
      const { response } = await heard({ model, input: 'Hello there. sandbox:nousage' })
      expect(await recordOf(gateway, response)).toMatchObject({ basis: 'estimated', status: 200 })
    }
  })
})

test('the same Idempotency-Key is not said twice', async () => {
  const headers = { 'idempotency-key': 'say-once' }
  const first = await gateway.post(path, { model: basic, input: 'Once.' }, headers)
  await first.arrayBuffer()
  const second = await refusedForFree(gateway, () => gateway.post(path, { model: basic, input: 'Once.' }, headers))
  expect(await errorOf(second)).toMatchObject({ status: 409, code: 'already_completed' })
})
