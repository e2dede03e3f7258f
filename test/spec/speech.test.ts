import { describe, expect, test } from 'bun:test'
import { formatDollars, nano } from '../../src/base/money.ts'
import { gatewayForTests } from '../support/gateway.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { basic, billedFor, expectMp3, hear, instruct, say, speakers, wavOf } from '../support/speech.ts'
import { errorOf } from '../support/streams.ts'

// `POST /v1/audio/speech`, row by row of the specification. How audio is sent: `speech-audio.test.ts`.

const gateway = gatewayForTests()

const refused = (body: Record<string, unknown>) =>
  refusedForFree(gateway, async () => errorOf(await say(gateway, body)))

const lastCall = async () => (await gateway.calls()).at(-1)
const lastInput = async () => (await lastCall())?.body['input'] as Record<string, unknown>

describe('model', () => {
  test.each(speakers)('%s returns audio and is recorded with its billing basis', async (model) => {
    const { response, sound } = await hear(gateway, { model })
    expect(sound.length).toBeGreaterThan(1_000)
    expect(await recordOf(gateway, response)).toMatchObject({
      status: 200,
      // A response of audio alone reports no usage.
      basis: model.startsWith('tts-1') ? 'estimated' : 'vendor',
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

  test('a model out of the key’s scope gets the same error as an unknown model', async () => {
    const { key } = await gateway.account({ models: ['gpt-*'] })
    const [forbidden, unknown] = await Promise.all([
      say(gateway, { model: 'tts-1' }, key),
      say(gateway, { model: 'tts-9' }, key),
    ])
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
    const { response } = await hear(gateway, { model: 'tts-1', input })
    const { usage, cost } = await recordOf(gateway, response)
    expect(usage).toMatchObject({ character: characters })
    // 15 dollars a million.
    expect(cost).toBe(nano(BigInt(characters) * 15_000n))
    expect(before.posted - (await gateway.balance()).posted).toBe(cost)
    const [line] = await billedFor(gateway, response)
    expect(line?.cost).toBe(formatDollars(cost))
  })

  test('a Han character that the vendor counts twice is charged to the customer once', async () => {
    const { response } = await hear(gateway, { input: '你好, Bob' })
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
  ])('invalid input %# is refused', async (input, code) => {
    expect(await refused({ input })).toMatchObject({ status: 400, type: 'invalid_request_error', code, param: 'input' })
  })

  test('text beyond the model’s limit is split at sentence ends, and its audio is joined', async () => {
    const input = 'Every sentence is said once. '.repeat(80)
    const { sound, response } = await hear(gateway, { input, response_format: 'wav' })
    const bill = await billedFor(gateway, response)
    expect(bill.map(({ units }) => units['characters'])).toEqual([580, 580, 580, 580])
    expect(await recordOf(gateway, response)).toMatchObject({ usage: { character: 2_320 }, basis: 'vendor' })
    const said = (await gateway.calls()).slice(-4).map(({ body }) => (body['input'] as { text: string }).text)
    expect(said.join('')).toBe(input)
    expect(said.every((text) => text.endsWith('. '))).toBe(true)
    // The simulator speaks 1,000 characters a minute.
    expect(wavOf(sound)).toMatchObject({ rate: 24_000, channels: 1 })
    expect(wavOf(sound).seconds).toBeCloseTo((4 * 579 * 60) / 1_000, 1)
    const { sound: mp3 } = await hear(gateway, { input })
    expectMp3(mp3)
    // 96 kbit/s.
    expect(mp3.length / 12_000).toBeCloseTo(wavOf(sound).seconds, 0)
  })

  test.each(['mp3', 'aac', 'opus', 'pcm'])(
    'a long text in the vendor’s own %s format is made in two calls, and their audio is joined',
    async (response_format) => {
      const input = 'One sentence. '.repeat(400)
      const { response, sound } = await hear(gateway, { model: 'tts-1', input, response_format })
      expect(await billedFor(gateway, response)).toHaveLength(2)
      const texts = (await gateway.calls()).slice(-2).map(({ body }) => String(body['input']))
      expect(texts.join('')).toBe(input)
      const alone: Buffer[] = []
      for (const text of texts)
        alone.push((await hear(gateway, { model: 'tts-1', input: text, response_format })).sound)
      expect(sound.equals(Buffer.concat(alone))).toBe(true)
    },
  )

  test('flac of a long text is refused', async () => {
    const error = await refused({ model: 'tts-1', input: 'One sentence. '.repeat(400), response_format: 'flac' })
    expect(error).toMatchObject({ status: 400, param: 'response_format', code: 'unsupported_value' })
  })
})

describe('voice', () => {
  test('a missing or null voice means the default voice', async () => {
    await hear(gateway, {})
    expect(await lastInput()).toMatchObject({ voice: 'Cherry' })
    await hear(gateway, { voice: null })
    expect(await lastInput()).toMatchObject({ voice: 'Cherry' })
  })

  test.each('alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar'.split(' '))(
    'the common protocol’s voice %s falls back to the default voice',
    async (voice) => {
      await hear(gateway, { voice })
      expect(await lastInput()).toMatchObject({ voice: 'Cherry' })
    },
  )

  test.each(['Ethan', 'Eldric Sage', 'Radio Gol'])('the model’s own voice %s is sent as given', async (voice) => {
    await hear(gateway, { voice })
    expect(await lastInput()).toMatchObject({ voice })
  })

  test('a voice can be given as an object with an id', async () => {
    await hear(gateway, { voice: { id: 'Ethan' } })
    expect(await lastInput()).toMatchObject({ voice: 'Ethan' })
  })

  test.each([
    [basic, 'Nobody'],
    [basic, 'cherry'],
    // Names are exact, as they are at the vendors: OpenAI refuses this one too.
    [basic, 'Alloy'],
    ['tts-1', 'Nova'],
    [instruct, 'Radio Gol'],
    ['tts-1', 'Cherry'],
    ['gemini-2.5-flash-preview-tts', 'Cherry'],
  ])('%s refuses the voice %s', async (model, voice) => {
    expect(await refused({ model, voice })).toMatchObject({
      status: 400,
      param: 'voice',
      type: 'invalid_request_error',
    })
  })

  test('verse, a common voice that tts-1 lacks, falls back to alloy', async () => {
    await hear(gateway, { model: 'tts-1', voice: 'verse' })
    expect((await lastCall())?.body).toMatchObject({ voice: 'alloy' })
  })
})

describe('response_format', () => {
  test.each(speakers)('%s answers in its default format: mp3, or wav for the instruct model', async (model) => {
    const { type, sound } = await hear(gateway, { model })
    if (model === instruct) return expect(type).toBe('audio/wav')
    expect(type).toBe('audio/mpeg')
    expectMp3(sound)
  })

  test.each(speakers)('%s returns wav on request, with its cost in a header', async (model) => {
    const { type, sound, response } = await hear(gateway, { model, response_format: 'wav' })
    expect(type).toBe('audio/wav')
    expect(wavOf(sound)).toMatchObject({ rate: 24_000, channels: 1 })
    expect(response.headers.get('x-turnpike-cost')).toBe(formatDollars((await recordOf(gateway, response)).cost))
  })

  test.each(['', 'sandbox:nousage', 'sandbox:eof=1'])(
    'a stream sold by the character has its cost %p too',
    async (word) => {
      const input = `Twenty-nine characters or so. ${word}`
      for (const model of ['qwen3-tts-flash', 'tts-1']) {
        const response = await say(gateway, { model, input })
        await response.arrayBuffer().catch(() => undefined)
        expect(response.headers.get('x-turnpike-cost')).toBe(formatDollars((await recordOf(gateway, response)).cost))
      }
    },
  )

  test.each([
    ['is sold by the token', { model: 'gpt-4o-mini-tts' }],
    ['is made in several calls', { input: 'Every sentence is said once. '.repeat(110) }],
  ])('a stream that %s does not', async (_, fields) => {
    const { response } = await hear(gateway, fields)
    expect(response.headers.get('x-turnpike-cost')).toBeNull()
  })

  test('a wav of more than 8 MiB is streamed, with the lengths in its header left open', async () => {
    const input = 'Every sentence is said once. '.repeat(110)
    const { response, sound } = await hear(gateway, { input, response_format: 'wav' })
    expect(response.headers.get('content-length')).toBeNull()
    expect([sound.readUInt32LE(4), sound.readUInt32LE(40)]).toEqual([0xffff_ffff, 0xffff_ffff])
    // One header, then samples only: the simulator speaks a character in 60 ms, and skips the blank that ends a part.
    const parts = (await billedFor(gateway, response)).length
    expect(sound.length).toBe(44 + (input.length - parts) * 60 * 48)
    expect(await recordOf(gateway, response)).toMatchObject({
      status: 200,
      usage: { character: 3_190 },
      basis: 'vendor',
    })
  })

  test.each(['mp3', 'opus', 'flac', 'aac', 'pcm'])(
    'the instruct model returns wav for %s, and the format is not sent upstream',
    async (response_format) => {
      const { type, sound } = await hear(gateway, { model: instruct, response_format })
      expect(type).toBe('audio/wav')
      wavOf(sound)
      expect(JSON.stringify((await lastCall())?.body)).not.toContain('format')
    },
  )

  test.each([
    ['opus', 'audio/opus', 'OggS'],
    ['flac', 'audio/flac', 'fLaC'],
    ['aac', 'audio/aac', '\xff\xf1'],
    ['pcm', 'audio/pcm', '\0\0'],
  ])('OpenAI’s models return %s on request', async (response_format, type, start) => {
    for (const model of ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts']) {
      const made = await hear(gateway, { model, response_format })
      expect([model, made.type]).toEqual([model, type])
      expect(made.sound.toString('latin1')).toStartWith(start)
    }
  })

  test.each([
    [basic, 'opus', 'mp3, wav'],
    ['gemini-2.5-flash-preview-tts', 'aac', 'mp3, wav, pcm'],
    ['tts-1', 'ogg', 'mp3, wav, opus, aac, flac, pcm'],
  ])('%s refuses %s and lists the formats it supports', async (model, response_format, list) => {
    const error = await refused({ model, response_format })
    expect(error).toMatchObject({ status: 400, param: 'response_format', code: 'unsupported_value' })
    expect(error.message).toContain(list)
  })
})

describe('instructions', () => {
  test('instructions are sent to models that take them', async () => {
    await hear(gateway, { model: instruct, instructions: 'fast, rising tone' })
    expect(await lastInput()).toMatchObject({ instructions: 'fast, rising tone' })
    await hear(gateway, { model: 'gpt-4o-mini-tts', instructions: 'whisper' })
    expect((await lastCall())?.body).toMatchObject({ instructions: 'whisper' })
  })

  test.each([basic, 'tts-1', 'tts-1-hd'])('instructions are refused on %s', async (model) => {
    expect(await refused({ model, instructions: 'slowly' })).toMatchObject({ status: 400, param: 'instructions' })
  })
})

describe('speed', () => {
  test.each([0.25, 1, 4, 17])('a speed of %d has no effect where the vendor lacks it', async (speed) => {
    const plain = await hear(gateway, { response_format: 'wav' })
    const { sound } = await hear(gateway, { speed, response_format: 'wav' })
    expect(sound.equals(plain.sound)).toBe(true)
    expect(JSON.stringify((await lastCall())?.body)).not.toContain('speed')
  })

  test('speed changes the length of the audio where the vendor supports it', async () => {
    const { sound: slow } = await hear(gateway, { model: 'tts-1', speed: 0.5, response_format: 'wav' })
    const { sound: fast } = await hear(gateway, { model: 'tts-1', speed: 2, response_format: 'wav' })
    expect(slow.length).toBeGreaterThan(2 * fast.length)
  })

  test('a speed that is not a number is refused', async () => {
    expect(await refused({ speed: 'fast' })).toMatchObject({ status: 400, param: 'speed', code: 'invalid_type' })
  })
})

describe('response 400: the upstream error passed through unchanged', () => {
  test.each([
    [basic, 'InvalidParameter', 'Required parameter(s) missing or invalid, please check the request parameters.'],
    [basic, 'DataInspectionFailed', 'Input or output data may contain inappropriate content.'],
  ])('%s: %s reaches the client with the vendor’s message and costs nothing', async (model, code, message) => {
    const response = await say(gateway, { model, input: `Hello sandbox:fail=${code}` })
    expect(await errorOf(response)).toMatchObject({ status: 400, type: 'invalid_request_error', message })
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n, status: 400 })
  })

  test('a refusal by OpenAI keeps its status and param and costs nothing', async () => {
    const response = await say(gateway, { model: 'tts-1', speed: 17 })
    expect(await errorOf(response)).toMatchObject({ status: 400, param: 'speed' })
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  })
})

describe('response 402', () => {
  test.each([basic, 'gpt-4o-mini-tts'])('a 402 for %s has a message and no other error field', async (model) => {
    const { key } = await gateway.account({ dollars: '0' })
    const response = await refusedForFree(gateway, () => say(gateway, { model }, key))
    expect(response.status).toBe(402)
    const body = (await response.json()) as { error: Record<string, unknown> }
    expect(Object.keys(body)).toEqual(['error'])
    expect(Object.keys(body.error)).toEqual(['message'])
    expect(response.headers.get('x-should-retry')).toBe('false')
  })
})
