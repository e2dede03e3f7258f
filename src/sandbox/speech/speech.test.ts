import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { recordAudio } from '../files/audio.ts'
import { bytesOf, openMedia } from '../media/testing.ts'
import { errorOf, eventsOf, jsonOf, splitEvents } from '../testing.ts'

const { sandbox, post, bill, clearBill } = openMedia()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const client = new OpenAI({ apiKey: 'vendor-key', baseURL: sandbox.baseUrl('openai'), maxRetries: 0 })
const input = 'The quick brown fox jumps over the lazy dog.'
const say = (body: object) =>
  post('/openai/v1/audio/speech', { model: 'gpt-4o-mini-tts', input, voice: 'alloy', ...body })

describe('OpenAI speech', () => {
  test.each([
    ['mp3', 'audio/mpeg'],
    ['opus', 'audio/opus'],
    ['aac', 'audio/aac'],
    ['flac', 'audio/flac'],
    ['wav', 'audio/wav'],
    ['pcm', 'audio/pcm'],
  ] as const)('speech in %s has the right type and lasts as long as the text', async (format, type) => {
    const response = await client.audio.speech.create({ model: 'tts-1', input, voice: 'nova', response_format: format })
    expect(response.headers.get('content-type')).toBe(type)
    expect(await bytesOf(response)).toEqual(recordAudio(format, 44 * 60))
    expect(await bill()).toMatchObject([{ status: 200, units: { characters: 44 }, cost: '0.00000066' }])
  })

  test('a higher speed makes the audio shorter', async () => {
    const bytes = await bytesOf(say({ response_format: 'pcm', speed: 2 }))
    expect(bytes.length).toBe(44 * 30 * 48)
  })

  test('streamed speech comes in events that end with the usage', async () => {
    const events = (await eventsOf(say({ stream_format: 'sse', response_format: 'pcm' }))).map(
      (event): { type: string; audio?: string; usage?: unknown } => JSON.parse(event),
    )
    const sound = Buffer.concat(events.map(({ audio = '' }) => Buffer.from(audio, 'base64')))
    expect(sound).toEqual(recordAudio('pcm', 44 * 60))
    expect(events.at(-1)).toEqual({
      type: 'speech.audio.done',
      usage: { input_tokens: 10, output_tokens: 55, total_tokens: 65 },
    })
    expect(await bill()).toMatchObject([{ units: { input: 10, audioOutput: 55 }, cost: '0.00000068' }])
  })

  test('an emoji and a Han character each count as one character', async () => {
    await bytesOf(say({ model: 'tts-1', input: 'a👍你' }))
    expect(await bill()).toMatchObject([{ units: { characters: 3 } }])
  })

  test.each([
    ['no text', { input: undefined }, 'input', 'missing_required_parameter'],
    ['an empty text', { input: '' }, 'input', 'empty_string'],
    ['too long a text', { input: 'a'.repeat(4097) }, 'input', 'string_above_max_length'],
    ['no voice', { voice: undefined }, 'voice', 'missing_required_parameter'],
    ['an unknown voice', { voice: 'Cherry' }, 'voice', 'invalid_value'],
    ['a newer voice on an older model', { model: 'tts-1', voice: 'marin' }, 'voice', 'invalid_value'],
    ['an unknown format', { response_format: 'ogg' }, 'response_format', 'invalid_value'],
    ['too high a speed', { speed: 4.5 }, 'speed', 'decimal_above_max_value'],
    ['events from an older model', { model: 'tts-1', stream_format: 'sse' }, 'stream_format', 'unsupported_value'],
  ])('a request is refused with a 400: %s', async (_, body, param, code) => {
    expect(await errorOf(say(body))).toMatchObject({ status: 400, param, code })
  })

  test('a custom voice is accepted', async () => {
    expect((await say({ voice: { id: 'voice_1234' } })).status).toBe(200)
  })
})

type Minimax = {
  data?: { audio: string; status: number }
  extra_info?: { usage_characters: number; audio_length: number }
  base_resp: { status_code: number }
}

describe('MiniMax speech', () => {
  const body = { model: 'speech-2.6-hd', text: 'Hello 你好', voice_setting: { voice_id: 'narrator' } }
  const audio = recordAudio('mp3', 8 * 60)

  test('the audio is in hex, and a Han character counts twice', async () => {
    const { data, extra_info: told, base_resp: base } = await jsonOf<Minimax>(post('/minimax/v1/t2a_v2', body))
    expect(Buffer.from(data?.audio ?? '', 'hex')).toEqual(audio)
    expect([base.status_code, told]).toMatchObject([0, { usage_characters: 10, audio_length: 480 }])
    expect(await bill()).toMatchObject([{ units: { characters: 10 }, cost: '0.00000015' }])
  })

  test('a stream ends with the whole audio again unless that is excluded', async () => {
    const text = await (await post('/minimax/v1/t2a_v2', { ...body, stream: true })).text()
    const events = splitEvents(text).map((event): Minimax => JSON.parse(event))
    expect(events.map(({ data }) => data?.status)).toEqual([1, 2])
    expect(Buffer.from(events[1]?.data?.audio ?? '', 'hex')).toEqual(audio)
    const options = { stream: true, stream_options: { exclude_aggregated_audio: true } }
    const once = splitEvents(await (await post('/minimax/v1/t2a_v2', { ...body, ...options })).text())
    expect(once.map((event) => (JSON.parse(event) as Minimax).data?.audio)).toEqual([audio.toString('hex'), ''])
  })

  test.each([
    ['an empty text', { text: '' }, 2013],
    ['too long a text', { text: 'a'.repeat(10_000) }, 2013],
    ['no voice', { voice_setting: {} }, 2013],
    ['an unknown voice', { voice_setting: { voice_id: 'alloy' } }, 2054],
    ['too low a speed', { voice_setting: { voice_id: 'narrator', speed: 0.4 } }, 2013],
    ['wav in a stream', { stream: true, audio_setting: { format: 'wav' } }, 2013],
    ['an unsupported sample rate', { audio_setting: { sample_rate: 12_345 } }, 2013],
    ['forbidden content', { text: 'hi sandbox:fail=1026' }, 1026],
    ['too many requests', { text: 'hi sandbox:status=429' }, 1002],
    ['a bad key', { text: 'hi sandbox:status=401' }, 1004],
  ])('a request is refused with status 200 and an error code: %s', async (_, more, code) => {
    const response = await post('/minimax/v1/t2a_v2', { ...body, ...more })
    expect([response.status, await jsonOf<Minimax>(response)]).toMatchObject([
      200,
      { base_resp: { status_code: code } },
    ])
  })
})

describe('ElevenLabs speech', () => {
  const path = '/elevenlabs/v1/text-to-speech/JBFqnCBsd6RMkjVDRZzb'
  const body = { model_id: 'eleven_multilingual_v2', text: 'Hello' }

  test('the cost in characters is in a response header', async () => {
    const response = await post(`${path}?output_format=pcm_24000`, body)
    expect(response.headers.get('character-cost')).toBe('5')
    expect(await bytesOf(response)).toEqual(recordAudio('pcm', 300))
    expect(await bill()).toMatchObject([{ model: 'eleven_multilingual_v2', units: { characters: 5 } }])
  })

  test.each([
    ['an unknown voice', path.slice(0, -1), body, 404, 'voice_not_found'],
    ['an unknown model', path, { ...body, model_id: 'none' }, 400, 'model_not_found'],
    ['an unknown format', `${path}?output_format=midi`, body, 422, 'invalid_output_format'],
    ['an unsupported sample rate', `${path}?output_format=pcm_12345`, body, 422, 'invalid_output_format'],
    ['too high a speed', path, { ...body, voice_settings: { speed: 1.3 } }, 400, 'invalid_voice_settings'],
    ['too long a text', path, { ...body, text: 'a'.repeat(10_001) }, 400, 'max_character_limit_exceeded'],
    ['an account without quota', path, { ...body, text: 'hi sandbox:fail=quota_exceeded' }, 401, 'quota_exceeded'],
    [
      'too many concurrent requests',
      path,
      { ...body, text: 'hi sandbox:status=429' },
      429,
      'too_many_concurrent_requests',
    ],
  ])('a request is refused: %s', async (_, path, body, status, code) => {
    const response = await post(path, body)
    expect([response.status, await response.json()]).toMatchObject([status, { detail: { status: code } }])
  })
})
