import { checkNumber } from '../chat/check-fields.ts'
import { badRequest, missing, type VendorError } from '../chat/errors.ts'
import { eventEncoder, type Frame } from '../event-stream.ts'
import { type Fields, fieldsIn, isGiven, textIn } from '../fields.ts'
import { type AudioFormat, audioTypes, recordAudio } from '../files/audio.ts'
import { commonHeaders, commonDialect, countTokens, oneOf, openJson, requiredText } from '../media/common.ts'
import { reportedUnits, usageUnlessHidden } from '../media/reported.ts'
import { endpointAt, type ServedAsk, type Endpoint } from '../serve.ts'
import type { Units } from '../bill.ts'
import type { SandboxModel } from '../model.ts'
import { readSteering, withoutSteering } from '../steering.ts'

/** How long a text takes to say: about 16 characters a second, and at least 240 ms. */
export function spokenMs(text: string, speed = 1): number {
  const { length } = Array.from(withoutSteering(text).trim())
  return Math.max(240, Math.round((length * 60) / speed))
}

/** Counts characters as some vendors do: a Han character counts twice. */
export function hanTwice(text: string): number {
  return Array.from(text).reduce((sum, character) => sum + (/\p{Script=Han}/u.test(character) ? 2 : 1), 0)
}

/** Audio in pieces held as text, one character per byte, so that binary and text streams share one path. */
export function* piecesOf(audio: Buffer, bytes = 16_384): Generator<string, void> {
  for (let at = 0; at < audio.length; at += bytes) yield audio.toString('latin1', at, at + bytes)
}

export const encodeBytes = ({ text }: Frame): Uint8Array => Buffer.from(text, 'latin1')

type SpeechAsk = ServedAsk & {
  readonly input: string
  readonly format: AudioFormat
  readonly ms: number
  readonly delivery: 'audio' | 'sse'
}

const inputCharactersMax = 4096

const voices = ['alloy', 'ash', 'coral', 'echo', 'fable', 'onyx', 'nova', 'sage', 'shimmer'] as const
const newerVoices = [...voices, 'ballad', 'verse', 'marin', 'cedar'] as const

const isOlder = ({ model }: SandboxModel): boolean => model.startsWith('tts-1')

/** `POST /audio/speech`: bytes, or the same in events. */
const speech: Endpoint<Fields, SpeechAsk, VendorError> = {
  dialect: commonDialect,
  capabilities: ['speech'],
  open: openJson,
  read: readAsk,
  make(ask, call) {
    const units = countUnits(ask)
    const pieces = piecesOf(recordAudio(ask.format, ask.ms))
    const isBare = ask.delivery === 'audio'
    return {
      units,
      headers: commonHeaders(call, isBare ? audioTypes[ask.format] : 'text/event-stream; charset=utf-8'),
      body: {
        kind: 'pieces',
        texts: isBare ? pieces : eventTexts(ask, units, pieces),
        encode: isBare ? encodeBytes : eventEncoder(ask.steering),
        error: () => '{"error":{"message":"Something went wrong.","type":"server_error","param":null,"code":null}}',
      },
    }
  },
}

export const speechProtocol = endpointAt('/audio/speech', speech)

function readAsk(body: Fields, model: SandboxModel): SpeechAsk {
  const input = requiredText(body, 'input', inputCharactersMax)
  checkVoice(body, model)
  if (isGiven(body.speed)) checkNumber('speed', body.speed, { whole: false, least: 0.25, most: 4 })
  const delivery = oneOf(body, 'stream_format', ['audio', 'sse'])
  if (delivery === 'sse' && isOlder(model)) {
    throw badRequest(
      "Unsupported value: 'stream_format' does not support 'sse' with this model.",
      'stream_format',
      'unsupported_value',
    )
  }
  return {
    model,
    steering: readSteering(textIn(body.instructions), input),
    input,
    format: oneOf(body, 'response_format', ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm']),
    ms: spokenMs(input, typeof body.speed === 'number' ? body.speed : 1),
    delivery,
  }
}

/** A voice is a name, or the id of a custom voice. Compatible vendors have voices of their own. */
function checkVoice(body: Fields, model: SandboxModel): void {
  if (!isGiven(body.voice)) throw missing('voice')
  if (model.vendor !== 'openai' || textIn(fieldsIn(body.voice).id) !== '') return
  oneOf(body, 'voice', isOlder(model) ? voices : newerVoices)
}

// 1,250 tokens a minute, so that a minute costs the 1.5 cents that the vendor quotes.
const tokensPerMs = 1_250 / 60_000

/** Counts characters where they have a price, otherwise the tokens of the text and the audio. */
function countUnits({ model, steering, input, ms }: SpeechAsk): Units {
  if (model.prices.character !== undefined) {
    return reportedUnits(steering, 'characters', { characters: Array.from(input).length })
  }
  return reportedUnits(steering, 'audioOutput', { input: countTokens(input), audioOutput: Math.ceil(ms * tokensPerMs) })
}

function* eventTexts(ask: SpeechAsk, units: Units, pieces: Iterable<string>): Generator<string, void> {
  for (const piece of pieces) {
    yield JSON.stringify({ type: 'speech.audio.delta', audio: Buffer.from(piece, 'latin1').toString('base64') })
  }
  const { input, audioOutput: output = 0 } = units
  const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output }
  yield JSON.stringify({ type: 'speech.audio.done', ...usageUnlessHidden(ask.steering, usage) })
}
