import { expect } from 'bun:test'
import type { TestGateway } from './gateway.ts'
import { attemptsOf } from './records.ts'

export const speechPath = '/v1/audio/speech'
export const basic = 'qwen3-tts-flash'
export const instruct = 'qwen3-tts-instruct-flash'
/** One of each kind: the specification's two, OpenAI's, Google's, MiniMax's and ElevenLabs'. */
export const speakers = [
  basic,
  instruct,
  'tts-1',
  'tts-1-hd',
  'gpt-4o-mini-tts',
  'gemini-2.5-flash-preview-tts',
  'speech-2.6-hd',
  'speech-2.6-turbo',
  'eleven-multilingual-v2',
]

/** Requests speech, by default a few words from the basic model. */
export function say(gateway: TestGateway, body: Record<string, unknown>, key = gateway.key): Promise<Response> {
  const asked = { model: basic, input: 'Hello there.', ...body }
  return gateway.post(speechPath, asked, { authorization: `Bearer ${key}` })
}

/** The same, read to its end. */
export async function hear(gateway: TestGateway, body: Record<string, unknown>) {
  const response = await say(gateway, body)
  expect(response.status).toBe(200)
  const sound = Buffer.from(await response.arrayBuffer())
  return { response, sound, type: response.headers.get('content-type') }
}

/** What the simulators charged for the calls of one request. */
export async function billedFor(gateway: TestGateway, response: Response) {
  const refs = new Set((await attemptsOf(gateway, response)).map(({ id }) => id))
  return (await gateway.bill()).filter(({ ref }) => refs.has(ref))
}

/** What a WAV header says, after a check that the lengths in it are correct. */
export function wavOf(audio: Buffer) {
  expect(audio.toString('latin1', 0, 4) + audio.toString('latin1', 8, 16)).toBe('RIFFWAVEfmt ')
  expect(audio.toString('latin1', 36, 40)).toBe('data')
  expect(audio.readUInt32LE(4)).toBe(audio.length - 8)
  expect(audio.readUInt32LE(40)).toBe(audio.length - 44)
  const seconds = (audio.length - 44) / audio.readUInt32LE(28)
  return { rate: audio.readUInt32LE(24), channels: audio.readUInt16LE(22), seconds }
}

export function expectMp3(audio: Buffer): void {
  expect([audio[0], (audio[1] ?? 0) & 0xe0]).toEqual([0xff, 0xe0])
}
