import { describe, expect, test } from 'bun:test'
import type { SpeechAsk } from '../../capabilities/speech.ts'
import { plainContext } from '../testing.ts'
import { explain } from './explain.ts'
import { speech } from './speech.ts'

const secrets = { baseUrl: 'https://vendor.example', credential: 'vk-0123456789abcdef' }
const context = { ...plainContext, ...secrets, upstreamModel: 'eleven_multilingual_v2' }

function say(varied: Partial<SpeechAsk> = {}) {
  const limits = { voices: [], formats: ['mp3', 'pcm'], instructions: false, charactersMax: 10_000 }
  const facts = { capability: 'speech', model: 'ours', stream: true, bound: {}, extras: {}, asEvents: false } as const
  const said = { pieces: ['Hello'], voice: '21m00Tcm4TlvDq8ikWAM', format: 'mp3', limits, soldBy: 'character' } as const
  return speech.say({ ...facts, ...said, ...varied }, 'Hello', context)
}

const noHeader = () => null

describe('a speech request', () => {
  test("the request is written in ElevenLabs' own form, with the key in one header", () => {
    const { url, headers, body } = say().call
    expect(url).toBe('https://vendor.example/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM/stream?output_format=mp3_44100_128')
    expect(headers).toEqual({
      'xi-api-key': 'vk-0123456789abcdef',
      'content-type': 'application/json',
      'x-client-request-id': 'att_1',
    })
    // Without a speed, the voice keeps the settings of its owner.
    expect(JSON.parse(body as string)).toEqual({ text: 'Hello', model_id: 'eleven_multilingual_v2' })
    expect(JSON.parse(say({ speed: 0.9 }).call.body as string)).toMatchObject({ voice_settings: { speed: 0.9 } })
  })

  test.each([
    ['mp3', 'mp3_44100_128', { kind: 'ready' }],
    ['wav', 'pcm_24000', { kind: 'pcm', rate: 24_000 }],
    ['pcm', 'pcm_24000', { kind: 'pcm', rate: 24_000 }],
  ] as const)("%s is made from the vendor's %s", (format, output, form) => {
    const saying = say({ format })
    expect(saying.call.url).toEndWith(`/stream?output_format=${output}`)
    const reader = saying.openReader(noHeader)
    expect([...reader.read(Uint8Array.of(1, 2))]).toEqual([1, 2])
    expect(reader).toMatchObject({ form, ended: true, refusal: undefined, usage: undefined })
  })

  test.each([
    ['character-cost', '5', { character: 5 }],
    ['x-character-count', '5', { character: 5 }],
    ['character-cost', '', undefined],
    ['character-cost', '-5', undefined],
    ['character-cost', '2.5e3', undefined],
    ['other', '5', undefined],
  ])('the usage is read from the response header %s: %s', (name, told, usage) => {
    expect(say().openReader((asked) => (asked === name ? told : null)).usage).toEqual(usage)
  })

  test.each(['', '..', '.', 'a/b', 'a?b', 'a#b', '%2e', 'a b', 'a'.repeat(129)])('the voice %j is refused', (voice) => {
    expect(() => say({ voice })).toThrow("'voice' must be a voice id of the vendor")
  })
})

const told = (status: number, detail: unknown) =>
  explain({ status, retryAfterSeconds: undefined, body: JSON.stringify({ detail }) }, secrets)

describe('a refusal', () => {
  test.each([
    [401, 'invalid_api_key', 'upstream-failed', 60],
    [401, 'missing_permissions', 'upstream-failed', 60],
    [401, 'quota_exceeded', 'upstream-failed', 60],
    [400, 'quota_exceeded', 'upstream-failed', 60],
    [429, 'too_many_concurrent_requests', 'too-many', 1],
    [429, 'system_busy', 'too-many', 1],
    [400, 'model_not_found', 'upstream-failed', undefined],
    [404, 'voice_not_found', 'upstream-rejected', undefined],
    [400, 'insufficient_credits', 'upstream-failed', 60],
    [400, 'concurrent_limit_exceeded', 'too-many', 1],
    [400, 'rate_limit_exceeded', 'too-many', 1],
    [403, 'model_access_denied', 'upstream-failed', undefined],
    [400, 'unsupported_model', 'upstream-failed', undefined],
    [404, 'invalid_voice_id', 'upstream-rejected', undefined],
    [403, 'free_users_not_allowed', 'upstream-rejected', undefined],
    [402, 'paid_plan_required', 'upstream-rejected', undefined],
    [403, 'voice_access_denied', 'upstream-rejected', undefined],
    [403, 'content_policy_violation', 'upstream-rejected', undefined],
    [400, 'max_character_limit_exceeded', 'upstream-rejected', undefined],
    [400, 'invalid_voice_settings', 'upstream-rejected', undefined],
    [500, 'voice_not_found', 'upstream-failed', undefined],
  ] as const)('a %d with %s is %s', (status, word, kind, rest) => {
    for (const detail of [
      { status: word, message: 'so it is' },
      { type: 'some_error', code: word, message: 'so it is', request_id: 'r' },
    ]) {
      const { error, retryable, restCredentialSeconds } = told(status, detail)
      expect([error.kind, restCredentialSeconds]).toEqual([kind, rest])
      expect(retryable).toBe(kind !== 'upstream-rejected')
      if (kind === 'upstream-rejected') expect(error.message).toBe('so it is')
    }
  })

  test('field errors are named, and key and address are redacted', () => {
    const fields = [{ type: 'missing', loc: ['body', 'text'], msg: 'Field required' }, { msg: 'and more' }]
    expect(told(422, fields).error).toMatchObject({
      kind: 'upstream-rejected',
      message: 'text: Field required; and more',
    })
    expect(told(404, 'Not Found').error.kind).toBe('upstream-failed')
    const { error } = told(400, { status: 'bad', message: 'vk-0123456789abcdef at vendor.example' })
    expect(error.message).toBe('[redacted] at [redacted]')
    expect(error.details.refusal).toMatchObject({ protocol: 'none', status: 400 })
  })
})
