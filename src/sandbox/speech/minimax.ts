import type { Units } from '../bill.ts'
import { badRequest, type VendorError } from '../chat/errors.ts'
import { eventEncoder } from '../event-stream.ts'
import { type Fields, fieldsIn, isGiven, textIn } from '../fields.ts'
import { type AudioFormat, recordAudio, sampleRate } from '../files/audio.ts'
import { linkAudio } from '../files/results.ts'
import { commonHeaders, commonManners, openJson } from '../media/common.ts'
import { at, type Asked, type Endpoint, type Manners, reportedUnits } from '../media/serve.ts'
import type { SandboxModel } from '../model.ts'
import type { Call } from '../protocol.ts'
import { hashText, seededId } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { hanTwice, piecesOf, spokenMs } from './speak.ts'

/** The vendor's own numbers of its errors. They come with HTTP 200, but for those of the server. */
const codes: Readonly<Record<number, number>> = { 401: 1004, 402: 1008, 404: 2013, 429: 1002 }

const base = (code: number, message: string) => ({ base_resp: { status_code: code, status_msg: message } })

const manners: Manners<VendorError> = {
  ...commonManners,
  writeRefusal: ({ text }, { status, message }) => {
    const code = codes[status] ?? (status >= 500 ? 1000 : 2013)
    const body = { trace_id: seededId('', hashText(text)), ...base(code, message) }
    return Response.json(body, { status: status >= 500 ? status : 200 })
  },
}

type MinimaxAsk = Asked & {
  readonly text: string
  readonly format: AudioFormat
  readonly ms: number
  readonly delivery: 'hex' | 'url'
  readonly isStreaming: boolean
}

/** `POST /t2a_v2` of MiniMax: sound as hexadecimal digits inside JSON. */
const minimaxSpeech: Endpoint<Fields, MinimaxAsk, VendorError> = {
  manners,
  capabilities: ['speech'],
  open: openJson,
  read: readAsk,
  make(ask, call) {
    const units = reportedUnits(ask.steering, 'characters', { characters: hanTwice(ask.text) })
    if (ask.isStreaming) {
      const texts = eventTexts(ask, call, units)
      const error = (): string => JSON.stringify(base(1000, 'unknown error'))
      const body = { kind: 'pieces', texts, encode: eventEncoder(ask.steering), error } as const
      return { units, headers: commonHeaders(call, 'text/event-stream'), body }
    }
    const { steering, format, ms } = ask
    const audio =
      ask.delivery === 'url' ? linkAudio(format, ms, { call, steering }) : recordAudio(format, ms).toString('hex')
    const text = JSON.stringify(writeAnswer(ask, call, audio, units))
    return { units, headers: commonHeaders(call), body: { kind: 'whole', text } }
  },
}

export const minimaxProtocol = at('/t2a_v2', minimaxSpeech)

const charactersMax = 10_000
const formats: readonly AudioFormat[] = ['mp3', 'pcm', 'flac', 'wav']

function readAsk(body: Fields, model: SandboxModel): MinimaxAsk {
  const text = textIn(body.text)
  if (text === '') throw badRequest('invalid params, text is empty', 'text')
  if (Array.from(text).length >= charactersMax) throw badRequest('invalid params, text is too long', 'text')
  const { voice_id: voice, speed = 1 } = fieldsIn(body.voice_setting)
  if (textIn(voice) === '') throw badRequest('invalid params, voice_id is empty', 'voice_setting.voice_id')
  if (typeof speed !== 'number' || speed < 0.5 || speed > 2) throw badRequest('invalid params, speed', 'speed')
  const asked = fieldsIn(body.audio_setting).format ?? 'mp3'
  const format = formats.find((known) => known === asked)
  const isStreaming = body.stream === true
  // A stream has no place for the lengths in a header of WAV.
  if (!format || (isStreaming && format === 'wav')) throw badRequest('invalid params, format', 'format')
  if (isGiven(body.output_format) && body.output_format !== 'hex' && body.output_format !== 'url') {
    throw badRequest('invalid params, output_format', 'output_format')
  }
  const delivery = body.output_format === 'url' ? 'url' : 'hex'
  return { model, steering: readSteering(text), text, format, ms: spokenMs(text, speed), delivery, isStreaming }
}

/** Status 2 is complete; the counts come with it. */
function writeAnswer({ steering, text, format, ms }: MinimaxAsk, call: Call, audio: string, units: Units): unknown {
  const counts = steering.has('nousage') ? {} : { usage_characters: units.characters ?? 0 }
  return {
    data: { audio, status: 2, ced: '' },
    extra_info: {
      audio_length: ms,
      audio_sample_rate: sampleRate,
      audio_size: recordAudio(format, ms).length,
      word_count: Array.from(text).length,
      audio_format: format,
      audio_channel: 1,
      ...counts,
    },
    trace_id: seededId('', hashText(call.text)),
    ...base(0, 'success'),
  }
}

/** The last event repeats the whole sound. */
function* eventTexts(ask: MinimaxAsk, call: Call, units: Units): Generator<string, void> {
  const sound = recordAudio(ask.format, ask.ms)
  for (const piece of piecesOf(sound)) {
    const audio = Buffer.from(piece, 'latin1').toString('hex')
    yield JSON.stringify({
      data: { audio, status: 1, ced: '' },
      trace_id: seededId('', hashText(call.text)),
      ...base(0, ''),
    })
  }
  yield JSON.stringify(writeAnswer(ask, call, sound.toString('hex'), units))
}
