import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject } from '../base/json.ts'
import type { SpeechLimits } from '../capabilities/limits.ts'
import type { SpeechAsk } from '../capabilities/speech.ts'
import { vendors } from './index.ts'
import { plainContext } from './testing.ts'
import type { AudioReader, SpeechAdapter } from './vendor.ts'

type Fixture = {
  readonly upstreamModel: string
  readonly soldBy: SpeechAsk['soldBy']
  readonly sent: { readonly path: string; readonly headers: Record<string, string>; readonly body: JsonObject }
  readonly stream: readonly string[]
  readonly sound: readonly number[]
  readonly form: JsonObject
  readonly usage: JsonObject
  readonly refusal?: { readonly stream: string; readonly status: number; readonly message: string }
}

const folder = import.meta.dir
const fixtures = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => /fixtures.speech.\w+\.json$/.test(file))
  .map((file): [string, Fixture] => {
    const id = file.replace(/^.*[/\\]|\.json$/g, '')
    return [id, JSON.parse(readFileSync(join(folder, file), 'utf8')) as Fixture]
  })

const secrets = { baseUrl: 'https://vendor.example/base', credential: 'vk-0123456789abcdef' }
const context = { ...plainContext, ...secrets }
const limits: SpeechLimits = { voices: [], formats: ['mp3', 'wav'], instructions: false, charactersMax: 600 }

const noHeader = () => null

function askFor(varied: Partial<SpeechAsk> = {}): SpeechAsk {
  const facts = { capability: 'speech', model: 'ours', stream: true, bound: {}, extras: {}, asEvents: false } as const
  const said = { pieces: ['Hello'], voice: 'v', format: 'mp3', limits, soldBy: 'character' } as const
  return { ...facts, ...said, ...varied }
}

function speechOf(id: string): SpeechAdapter {
  const adapter = vendors.get(id)?.speech
  if (adapter === undefined) throw new Error(`${id} does not speak`)
  return adapter
}

/** Reads byte by byte, because a vendor's packets may end anywhere. */
function readAll(reader: AudioReader, stream: string): number[] {
  return [...Buffer.from(stream)].flatMap((byte) => [...reader.read(Uint8Array.of(byte))])
}

describe.each(fixtures)('the speech adapter of %s', (id, fixture) => {
  const saying = speechOf(id).say(askFor({ soldBy: fixture.soldBy, speed: 1.5 }), 'Hello', context)

  test("the request is written in the vendor's own form, with the key in one header", () => {
    const { call } = saying
    expect(call.url).toBe(secrets.baseUrl + fixture.sent.path)
    expect(JSON.parse(call.body as string)).toEqual(fixture.sent.body)
    expect(call.headers).toEqual({
      ...fixture.sent.headers,
      'content-type': 'application/json',
      'x-client-request-id': 'att_1',
    })
  })

  test('the audio is extracted from the stream as it arrives, to its end, and counted', () => {
    const reader = saying.openReader(noHeader)
    const [first = '', ...rest] = fixture.stream
    const heard = readAll(reader, first)
    expect(heard.length).toBeGreaterThan(0)
    expect(reader.ended).toBe(false)
    expect([...heard, ...readAll(reader, rest.join(''))]).toEqual([...fixture.sound])
    expect(reader.form).toEqual(fixture.form as AudioReader['form'])
    expect(reader.ended).toBe(true)
    expect(reader.usage).toMatchObject(fixture.usage)
    expect(reader.refusal).toBeUndefined()
  })
})

const refusals = fixtures.flatMap(([id, { soldBy, refusal }]) =>
  refusal === undefined ? [] : [{ id, soldBy, refusal }],
)

test.each(refusals)('a refusal of $id under a 200 is recognised and explained', ({ id, soldBy, refusal }) => {
  const reader = speechOf(id).say(askFor({ soldBy }), 'Hello', context).openReader(noHeader)
  expect(readAll(reader, refusal.stream)).toEqual([])
  expect(reader.refusal?.status).toBe(refusal.status)
  const body = reader.refusal?.body ?? ''
  const verdict = vendors.get(id)?.explain({ status: refusal.status, retryAfterSeconds: undefined, body }, secrets)
  expect(verdict).toMatchObject({
    error: { kind: 'upstream-rejected', message: refusal.message },
    retryable: false,
  })
})

function sayCommon(varied: Partial<SpeechAsk>, mediaType: string | null = null) {
  const saying = speechOf('openai').say(askFor(varied), 'Héllo', context)
  return { body: JSON.parse(saying.call.body as string) as JsonObject, reader: saying.openReader(() => mediaType) }
}

function readGoogle(event: JsonObject): number[] {
  const reader = speechOf('google').say(askFor(), 'Hello', context).openReader(noHeader)
  return readAll(reader, `data: ${JSON.stringify(event)}\n\n`)
}

describe('the common protocol', () => {
  test('speech billed by the character is bare audio without usage', () => {
    const { body, reader } = sayCommon({})
    expect(body['stream_format']).toBeUndefined()
    expect([...reader.read(Uint8Array.of(1, 2))]).toEqual([1, 2])
    expect(reader).toMatchObject({ form: { kind: 'ready' }, ended: true, usage: undefined })
  })

  test.each([
    ['mp3', ['mp3', 'wav'], 'mp3', { kind: 'ready' }],
    ['opus', ['mp3', 'opus'], 'opus', { kind: 'ready' }],
    ['wav', ['mp3', 'wav'], 'wav', { kind: 'wav' }],
    ['mp3', ['wav'], 'wav', { kind: 'wav' }],
    ['mp3', ['pcm'], 'pcm', { kind: 'pcm', rate: 24_000 }],
    ['wav', ['mp3', 'pcm'], 'pcm', { kind: 'pcm', rate: 24_000 }],
    ['pcm', ['mp3', 'wav', 'pcm'], 'pcm', { kind: 'pcm', rate: 24_000 }],
  ] as const)('%s from a vendor that offers %j is made from its %s', (format, formats, asked, form) => {
    const { body, reader } = sayCommon({ format, limits: { ...limits, formats } })
    expect(body['response_format']).toBe(asked)
    expect(reader.form).toEqual(form)
  })

  test('bare audio in place of the events that were asked for is read as audio without usage', () => {
    const { body, reader } = sayCommon({ soldBy: 'token' }, 'audio/mpeg')
    expect(body['stream_format']).toBe('sse')
    expect([...reader.read(Uint8Array.of(1, 2))]).toEqual([1, 2])
    expect(reader).toMatchObject({ form: { kind: 'ready' }, ended: true, usage: undefined })
  })

  test('an error among the events ends the audio with a failure', () => {
    const { reader } = sayCommon({ soldBy: 'token' })
    expect(() => readAll(reader, 'data: {"error":{"message":"x"}}\n\n')).toThrow('broke off')
  })

  test.each(['{}', '{"input_tokens":5}', '{"output_tokens":7}', '{"input_tokens":"5","output_tokens":7}'])(
    'an incomplete token count is ignored: %s',
    (usage) => {
      const { reader } = sayCommon({ soldBy: 'token' })
      readAll(reader, `data: {"type":"speech.audio.done","usage":${usage}}\n\n`)
      expect(reader).toMatchObject({ ended: true, usage: undefined })
    },
  )
})

function readerOf(soldBy: SpeechAsk['soldBy']): AudioReader {
  return speechOf('dashscope').say(askFor({ soldBy }), 'Hello', context).openReader(noHeader)
}

function event(body: JsonObject, comment = ':HTTP_STATUS/200\n'): string {
  return `${comment}data:${JSON.stringify(body)}\n\n`
}

describe('DashScope speech', () => {
  const output = { finish_reason: 'stop', audio: { data: 'AQI=' } }

  test('speech billed by tokens counts the audio tokens as output', () => {
    const reader = readerOf('token')
    const usage = { characters: 5, input_tokens: 14, output_tokens: 76, total_tokens: 90 }
    readAll(reader, event({ output, usage }))
    expect(reader.usage).toEqual({ input: 14, audioOutput: 76 })
  })

  test('a missing count is ignored and an earlier count is kept', () => {
    for (const soldBy of ['token', 'character'] as const) {
      const reader = readerOf(soldBy)
      readAll(reader, event({ output, usage: { input_tokens: 14 } }))
      expect(reader.usage).toBeUndefined()
      readAll(reader, event({ output, usage: { characters: 5, output_tokens: 7 } }) + event({ output }))
      expect(reader.usage).toEqual(soldBy === 'token' ? { input: 0, audioOutput: 7 } : { character: 5 })
    }
  })

  test('a refusal has the status of its comment line, or a 500 without one', () => {
    const refused = { code: 'InternalError', message: 'as in :HTTP_STATUS/200' }
    for (const [comment, status] of [
      [':HTTP_STATUS/429\n', 429],
      ['', 500],
    ] as const) {
      const reader = readerOf('token')
      readAll(reader, event(refused, comment))
      expect(reader.refusal).toEqual({ status, body: JSON.stringify(refused) })
    }
  })

  test('the vendor’s own fields are passed on, those about instructions only beside instructions', () => {
    const extras = { language_type: 'English', optimize_instructions: true }
    const inputOf = (varied: Partial<SpeechAsk>) => {
      const { call } = speechOf('dashscope').say(askFor({ extras, ...varied }), 'Hello', context)
      return (JSON.parse(call.body as string) as JsonObject)['input']
    }
    const plain = { text: 'Hello', voice: 'v', language_type: 'English' }
    expect(inputOf({})).toEqual(plain)
    expect(inputOf({ instructions: 'fast' })).toEqual({ ...plain, instructions: 'fast', optimize_instructions: true })
  })
})

function settingOf(format: string) {
  const { call } = speechOf('minimax').say(askFor({ format }), 'Hello', context)
  return (JSON.parse(call.body as string) as JsonObject)['audio_setting']
}

describe('MiniMax speech', () => {
  test('wav is requested as pcm', () => {
    for (const format of ['wav', 'pcm']) {
      expect(settingOf(format)).toEqual({ format: 'pcm', sample_rate: 24_000, channel: 1 })
    }
    expect(settingOf('flac')).toEqual({ format: 'flac' })
  })

  test('the final audio is used only if no audio came before it', () => {
    const reader = speechOf('minimax').say(askFor(), 'Hello', context).openReader(noHeader)
    const end = `data: ${JSON.stringify({ data: { audio: '0102', status: 2 } })}\n\n`
    expect(readAll(reader, end)).toEqual([1, 2])
    expect(readAll(reader, end)).toEqual([])
    expect(reader).toMatchObject({ ended: true, usage: undefined })
  })

  test('an error in place of audio has the status of its code', () => {
    const reader = speechOf('minimax').say(askFor(), 'Hello', context).openReader(noHeader)
    const said = (code: number) => reader.statusOf?.(JSON.stringify({ base_resp: { status_code: code } }))
    expect([1004, 1008, 1002, 2054, 7, 0].map(said)).toEqual([401, 402, 429, 400, 500, undefined])
    expect(reader.statusOf?.('no json')).toBeUndefined()
  })
})

describe('Google speech', () => {
  test('a filtered text is refused, and missing audio is a failure', () => {
    expect(() => readGoogle({ promptFeedback: { blockReason: 'SAFETY' } })).toThrow(
      'refused to speak this text: SAFETY',
    )
    expect(() => readGoogle({ candidates: [{ finishReason: 'PROHIBITED_CONTENT' }] })).toThrow('PROHIBITED_CONTENT')
    expect(() => readGoogle({ candidates: [{ finishReason: 'OTHER' }] })).toThrow('sent no audio')
  })

  test('a count is kept when the last event has none', () => {
    const reader = speechOf('google').say(askFor(), 'Hello', context).openReader(noHeader)
    const parts = [{ inlineData: { mimeType: 'audio/L16', data: 'AQI=' } }]
    for (const event of [
      {
        candidates: [{ content: { parts } }],
        usageMetadata: {
          promptTokenCount: 3,
          candidatesTokenCount: 9,
          candidatesTokensDetails: [{ modality: 'AUDIO', tokenCount: 9 }],
        },
      },
      { candidates: [{ finishReason: 'STOP' }] },
    ]) {
      readAll(reader, `data: ${JSON.stringify(event)}\n\n`)
    }
    expect(reader).toMatchObject({ ended: true, usage: { input: 3, audioOutput: 9 } })
  })

  test('audio without a sample rate is taken as 24 kHz', () => {
    const reader = speechOf('google').say(askFor(), 'Hello', context).openReader(noHeader)
    const parts = [{ inlineData: { mimeType: 'audio/L16', data: 'AQI=' } }]
    readAll(reader, `data: ${JSON.stringify({ candidates: [{ content: { parts } }] })}\n\n`)
    expect(reader.form).toEqual({ kind: 'pcm', rate: 24_000 })
  })

  test.each([
    ['STOP', true],
    ['MAX_TOKENS', false],
    ['OTHER', false],
    ['PROHIBITED_CONTENT', false],
  ])('audio that finishes with %s is whole: %p', (finishReason, isWhole) => {
    const reader = speechOf('google').say(askFor(), 'Hello', context).openReader(noHeader)
    const parts = [{ inlineData: { mimeType: 'audio/L16', data: 'AQI=' } }]
    for (const candidate of [{ content: { parts } }, { finishReason }]) {
      readAll(reader, `data: ${JSON.stringify({ candidates: [candidate] })}\n\n`)
    }
    expect(reader.ended).toBe(isWhole)
  })

  test('feedback on the prompt without a reason to block it refuses nothing', () => {
    expect(readGoogle({ promptFeedback: { safetyRatings: [] }, usageMetadata: { promptTokenCount: 3 } })).toEqual([])
  })
})

test('labels by which a vendor groups requests are made distinct from those of other accounts', () => {
  const labelled = askFor({ extras: { safety_identifier: 's', other: 'o' }, instructions: 'Calmly.' })
  const { body } = speechOf('openai').say(labelled, 'Hello', context).call
  const sent = { safety_identifier: 'mine/s', other: 'o', instructions: 'Calmly.' }
  expect(JSON.parse(body as string)).toMatchObject(sent)
})
