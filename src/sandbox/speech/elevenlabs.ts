import { VendorError } from '../chat/errors.ts'
import { type Fields, fieldsIn, parseFields, textIn } from '../fields.ts'
import { type AudioFormat, audioTypes, recordAudio } from '../files/audio.ts'
import { commonManners } from '../media/common.ts'
import { at, type Asked, type Endpoint, type Manners, reportedUnits } from '../media/serve.ts'
import type { SandboxModel } from '../model.ts'
import type { Call } from '../protocol.ts'
import { hashText, seededId } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { encodeBytes, piecesOf, spokenMs } from './speak.ts'

const refuse = (status: number, code: string, message: string): VendorError =>
  new VendorError({ status, code, message })

/** A key in a header of its own, and every refusal in `detail`. */
const manners: Manners<VendorError> = {
  ...commonManners,
  readKey(request) {
    const key = request.headers.get('xi-api-key') ?? ''
    if (key === '') throw refuse(401, 'needs_authorization', 'Neither authorization header nor xi-api-key received.')
    if (key === 'bad-key') throw refuse(401, 'invalid_api_key', 'Invalid API key')
    return key
  },
  writeRefusal: (_, { status, code, message }) =>
    Response.json({ detail: { status: code ?? 'error', message } }, { status }),
  unknownModel: (model) => refuse(400, 'model_not_found', `A model with model ID ${model} does not exist.`),
  wrongModel: (model) => refuse(400, 'model_can_not_do_text_to_speech', `${model} does not speak.`),
}

type ElevenAsk = Asked & { readonly text: string; readonly format: AudioFormat; readonly ms: number }

/** `POST /text-to-speech/{voice}`: bytes, and what they cost in a header. */
const elevenSpeech: Endpoint<Fields, ElevenAsk, VendorError> = {
  manners,
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

/** Also with `/stream` behind the voice, which only matters to those who listen while it is made. */
export const elevenlabsProtocol = at('/text-to-speech/*', elevenSpeech)

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
  return { model, steering: readSteering(text), text, format: readFormat(request), ms: spokenMs(text, Number(speed)) }
}

/** `mp3_44100_128`, `pcm_24000`, `opus_48000_64`: the codec comes first. */
function readFormat(request: Request): AudioFormat {
  const asked = new URL(request.url).searchParams.get('output_format') ?? 'mp3_44100_128'
  const [codec] = asked.split('_')
  if (codec === 'mp3' || codec === 'pcm' || codec === 'opus' || codec === 'wav') return codec
  throw refuse(422, 'invalid_output_format', `The output_format ${asked} is not supported.`)
}
