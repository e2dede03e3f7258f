import { badRequest, GatewayError } from '../../base/errors.ts'
import { asDouble, isGiven, type JsonObject } from '../../base/json.ts'
import type { ReceivedRequest, Bound } from '../../capabilities/ask.ts'
import type { ModelTraits, SpeechLimits } from '../../capabilities/limits.ts'
import { charactersOf, type SpeechAsk, type SpeechCodec } from '../../capabilities/speech.ts'
import { splitText } from '../../capabilities/split-text.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { checkSpellingOf } from '../check-spelling.ts'
import { parseBy } from '../check.ts'
import { countText } from '../estimate.ts'
import { invalid, unsupportedValue } from '../issues.ts'
import { requireModel } from '../require-model.ts'
import { refuseRerouting, reroutingFields } from '../rerouting.ts'
import { writeStreamError } from './errors.ts'
import { speechRequest } from './speech-schema.ts'

/** Speech in the common protocol. */
export const openaiSpeech: SpeechCodec = {
  readAsk,
  estimateTokens: (text) => Math.max(1, countText(text)),
  contentTypeOf: ({ asEvents, format }) =>
    asEvents ? 'text/event-stream; charset=utf-8' : (contentTypes[format] ?? 'application/octet-stream'),
  writeDelta: (audio) => event({ type: 'speech.audio.delta', audio: Buffer.from(audio).toString('base64') }),
  writeDone: (usage) => event({ type: 'speech.audio.done', usage: shownUsage(usage) }),
  writeStreamError: ({ asEvents }, error) => (asEvents ? writeStreamError(error) : undefined),
}

export const contentTypes: Readonly<Record<string, string>> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
}

/** The common protocol's voices. A client has to name one, so a voice that the model lacks stands for its default. */
const commonVoices: ReadonlySet<string> = new Set(
  'alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar'.split(' '),
)

// More than an hour of speech: 200 MB of samples.
const inputCharactersMax = 65_536

const checkSpelling = checkSpellingOf([...Object.keys(speechRequest.shape), ...reroutingFields])

function readAsk({ body }: ReceivedRequest, lookUp: (model: string) => ModelTraits): SpeechAsk {
  const model = requireModel(body)
  const traits = lookUp(model)
  const { speech: limits } = traits
  if (limits === undefined) throw new GatewayError('bug', `${model} has no limits for speech`)
  checkSpelling(body)
  refuseRerouting(body)
  const request = parseBy(speechRequest, { ...body, speed: asDouble(body['speed']) }, body)
  const { model: _, input, voice, response_format, instructions, speed, stream_format, ...extras } = request

  checkInput(input)
  if (isGiven(instructions) && instructions !== '' && !limits.instructions) {
    throw badRequest("'instructions' are not supported with this model.", 'instructions', 'unsupported_parameter')
  }
  const format = readFormat(response_format ?? 'mp3', limits)
  const chosen = readVoice(typeof voice === 'object' ? voice?.id : voice, limits)
  const pieces = splitText(input, limits.charactersMax)
  checkJoining(format, pieces, limits)
  const said = { pieces, ...(isGiven(instructions) && instructions !== '' && { instructions }) }
  const soldBy = traits.sells('character') ? 'character' : 'token'
  const asEvents = stream_format === 'sse'
  return {
    capability: 'speech',
    model,
    // A wav header states the length, so a wav that is not too long is sent once its length is known.
    stream: asEvents || format !== 'wav',
    ...(soldBy === 'character'
      ? { bound: { character: charactersOf(input), request: pieces.length } }
      : tokenBounds(said, speed ?? 1)),
    ...said,
    format,
    ...(chosen !== undefined && { voice: chosen }),
    ...(isGiven(speed) && { speed }),
    limits,
    soldBy,
    asEvents,
    extras: extras as JsonObject,
  }
}

function checkInput(text: string): void {
  if (text.trim() === '') throw invalid('input', 'there is nothing to say', 'empty_string')
  const characters = charactersOf(text)
  if (characters <= inputCharactersMax) return
  const why = `string too long. Expected at most ${inputCharactersMax} characters, but got ${characters}`
  throw invalid('input', why, 'string_above_max_length')
}

/** The formats of the vendor, and those that we make from its samples: mp3 and wav, which every model has. */
function readFormat(asked: string, { formats, onlyFormat }: SpeechLimits): string {
  if (onlyFormat !== undefined) return onlyFormat
  const offered = [...new Set(['mp3', 'wav', ...formats])]
  if (offered.includes(asked)) return asked
  throw unsupportedValue('response_format', `'${asked}'`, `Supported values are: ${offered.join(', ')}.`)
}

function readVoice(asked: string | null | undefined, { voices, voiceDefault }: SpeechLimits): string | undefined {
  if (!isGiven(asked) || asked === '') return voiceDefault
  if (voices.includes(asked)) return asked
  // A default outside the common voices shows that the model lacks those, even where its voices are unknown.
  const hasOwn = voices.length > 0 || (voiceDefault !== undefined && !commonVoices.has(voiceDefault))
  if (hasOwn && commonVoices.has(asked)) return voiceDefault
  // Where the model's voices are unknown, the vendor judges.
  if (voices.length === 0) return asked
  throw unsupportedValue('voice', `'${asked.slice(0, 100)}'`, `Supported values are: ${voices.join(', ')}.`)
}

/** Frames of mp3 and aac can be concatenated, and whole opus files too; a second header inside a flac file is noise. */
function checkJoining(format: string, pieces: readonly string[], { charactersMax }: SpeechLimits): void {
  if (pieces.length === 1 || format !== 'flac') return
  const message = `Input of more than ${charactersMax} characters cannot be joined as flac with this model; mp3 and wav can.`
  throw badRequest(message, 'response_format', 'unsupported_value')
}

// Vendors count 20 to 25 tokens per second of audio; slow speech takes half a second for a Chinese character.
const tokensPerCharacterMax = 16
const tokensSpare = 500
const speedMin = 0.25

function tokenBounds(
  { pieces, instructions = '' }: Pick<SpeechAsk, 'pieces' | 'instructions'>,
  speed: number,
): Required<Pick<SpeechAsk, 'bound' | 'believable'>> {
  const characters = pieces.reduce((sum, piece) => sum + charactersOf(piece), 0)
  const bytes = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)
  const slowness = 1 / Math.min(1, Math.max(speedMin, speed))
  const input = bytes + pieces.length * (Buffer.byteLength(instructions) + tokensSpare)
  const output = Math.ceil(characters * tokensPerCharacterMax * slowness) + pieces.length * tokensSpare
  const bound: Bound = { input, output, request: pieces.length }
  return { bound, believable: { input, output } }
}

function shownUsage({ input = 0, output = 0, audioOutput = 0, character }: Usage = {}) {
  const made = output + audioOutput
  return {
    input_tokens: input,
    output_tokens: made,
    total_tokens: input + made,
    ...(character !== undefined && { characters: character }),
  }
}

function event(data: unknown): Uint8Array {
  return new TextEncoder().encode(`data: ${JSON.stringify(data)}\n\n`)
}
