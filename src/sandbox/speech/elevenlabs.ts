import { type Fields, fieldsIn, parseFields, textIn } from '../fields.ts'
import { type AudioFormat, audioTypes, isAudioFormat, recordAudio } from '../files/audio.ts'
import { reportedUnits } from '../media/reported.ts'
import { endpointAt, type ServedAsk, type Endpoint, type Dialect } from '../serve.ts'
import type { SandboxModel } from '../model.ts'
import { edgePage } from '../odd-answers.ts'
import type { Call } from '../protocol.ts'
import { CodedRefusal, refusalsIn, type RefusalRows } from '../refusal.ts'
import { hashText, seededId } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { encodeBytes, piecesOf, spokenMs } from './speak.ts'

/** The vendor's refusals by the code that it gives in `detail`. */
const rows: RefusalRows = {
  invalid_request: [422, 'The request is not valid.'],
  needs_authorization: [401, 'Neither authorization header nor xi-api-key received.'],
  invalid_api_key: [401, 'Invalid API key'],
  quota_exceeded: [401, 'This request exceeds your quota. You have 0 credits remaining.'],
  paid_plan_required: [402, 'Free users cannot use library voices via the API.'],
  content_policy_violation: [403, 'The text violates the terms of use.'],
  voice_not_found: [404, 'A voice with this voice_id was not found.'],
  too_many_concurrent_requests: [429, 'Too many concurrent requests.'],
  system_busy: [429, 'The system is experiencing heavy traffic, please try again.'],
  internal_server_error: [500, 'Something went wrong.'],
}

const { errorForCode, errorForStatus } = refusalsIn({
  rows,
  usual: { 401: 'invalid_api_key', 402: 'quota_exceeded', 404: 'voice_not_found', 429: 'too_many_concurrent_requests' },
  callers: 'invalid_request',
  vendors: 'internal_server_error',
  codeOf: String,
})

const refuse = (status: number, code: string, message: string): CodedRefusal => new CodedRefusal(status, code, message)
const writeDetail = (status: string, message: string): object => ({ detail: { status, message } })

/** ElevenLabs takes its key in a header of its own and puts every refusal into `detail`. */
const dialect: Dialect<CodedRefusal> = {
  readKey(request) {
    const key = request.headers.get('xi-api-key') ?? ''
    if (key === '') throw errorForCode('needs_authorization')
    if (key === 'bad-key') throw errorForCode('invalid_api_key')
    return key
  },
  isRefusal: (error) => error instanceof CodedRefusal,
  writeRefusal: (_, { status, code, message }) =>
    edgePage(status, { also: [504] }) ?? Response.json(writeDetail(code, message), { status }),
  unknownModel: (model) => refuse(400, 'model_not_found', `A model with model ID ${model} does not exist.`),
  wrongModel: (model) => refuse(400, 'model_can_not_do_text_to_speech', `${model} does not speak.`),
  refusalsFor: (key) => ({
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => refuse(401, 'invalid_api_key', `Invalid API key: ${key}`),
    body200: () => writeDetail('internal_server_error', 'Something went wrong.'),
  }),
}

type ElevenAsk = ServedAsk & { readonly text: string; readonly format: AudioFormat; readonly ms: number }

/** `POST /text-to-speech/{voice}`: audio bytes, with their cost in a header. */
const elevenSpeech: Endpoint<Fields, ElevenAsk, CodedRefusal> = {
  dialect,
  capabilities: ['speech'],
  open({ text }) {
    const body = parseFields(text)
    if (!body) throw refuse(422, 'invalid_request', 'The body is no JSON object.')
    return { model: textIn(body.model_id), body }
  },
  read: readAsk,
  make(ask, call) {
    const units = reportedUnits(ask.steering, 'characters', { characters: Array.from(ask.text).length })
    const cost = ask.steering.has('nousage') ? {} : { 'character-cost': String(units.characters ?? 0) }
    const headers = { 'content-type': audioTypes[ask.format], 'request-id': seededId('', hashText(call.text)), ...cost }
    const texts = piecesOf(recordAudio(ask.format, ask.ms))
    return { units, headers, body: { kind: 'pieces', texts, encode: encodeBytes, error: () => '' } }
  },
}

/** Also serves `/stream` after the voice, which only matters to clients that play the audio while it is made. */
export const elevenlabsProtocol = endpointAt('/text-to-speech/*', elevenSpeech)

const charactersMax = 10_000

function readAsk(body: Fields, model: SandboxModel, { path, request }: Call): ElevenAsk {
  const voice = path.split('/text-to-speech/')[1]?.split('/')[0] ?? ''
  if (!/^[A-Za-z0-9]{20}$/.test(voice)) {
    throw refuse(404, 'voice_not_found', `A voice with the voice_id ${voice} was not found.`)
  }
  const text = textIn(body.text)
  if (text === '') throw refuse(422, 'invalid_request', 'text: Field required')
  if (Array.from(text).length > charactersMax) {
    throw refuse(400, 'max_character_limit_exceeded', `The text is longer than ${charactersMax} characters.`)
  }
  const { speed = 1 } = fieldsIn(body.voice_settings)
  if (typeof speed !== 'number' || speed < 0.7 || speed > 1.2) {
    const message =
      'Invalid setting for speed received, expected to be greater or equal to 0.7 and less or equal to 1.2.'
    throw refuse(400, 'invalid_voice_settings', message)
  }
  return { model, steering: readSteering(text), text, format: readFormat(request), ms: spokenMs(text, speed) }
}

/** The codec, then the sample rate, then for compressed formats the bit rate in kbit/s. */
const outputFormats =
  /^(?:(mp3)_(?:22050_32|24000_48|44100_(?:32|64|96|128|192))|(opus)_48000_(?:32|64|96|128|192)|(pcm|wav)_(?:8000|16000|22050|24000|32000|44100|48000))$/

function readFormat(request: Request): AudioFormat {
  const asked = new URL(request.url).searchParams.get('output_format') ?? 'mp3_44100_128'
  const codec = outputFormats
    .exec(asked)
    ?.slice(1)
    .find((found) => found !== undefined)
  if (codec !== undefined && isAudioFormat(codec)) return codec
  throw refuse(422, 'invalid_output_format', `The output_format ${asked} is not supported.`)
}
