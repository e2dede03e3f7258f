import type { Units } from '../bill.ts'
import { eventEncoder } from '../event-stream.ts'
import { type Fields, fieldsIn, isGiven, textIn } from '../fields.ts'
import { type AudioFormat, recordAudio, sampleRate } from '../files/audio.ts'
import { linkAudio } from '../files/results.ts'
import { commonHeaders } from '../media/common.ts'
import { reportedUnits } from '../media/reported.ts'
import { endpointAt, type ServedAsk, type Endpoint, openFields } from '../serve.ts'
import type { SandboxModel } from '../model.ts'
import type { Call } from '../protocol.ts'
import type { CodedRefusal } from '../refusal.ts'
import { hashText, seededId } from '../seeded.ts'
import { readSteering } from '../steering.ts'
import { errorForCode, invalid, writeBase } from '../video-minimax/errors.ts'
import { minimaxDialect } from '../video-minimax/dialect.ts'
import { hanTwice, piecesOf, spokenMs } from './speak.ts'

type MinimaxAsk = ServedAsk & {
  readonly text: string
  readonly format: AudioFormat
  readonly ms: number
  readonly delivery: 'hex' | 'url'
  readonly isStreaming: boolean
  /** Whether the last event repeats the whole audio. */
  readonly repeats: boolean
}

const writeTrouble = (): string => JSON.stringify(writeBase(1000, 'unknown error'))

/** `POST /t2a_v2` of MiniMax: audio as hexadecimal digits inside JSON. */
const minimaxSpeech: Endpoint<Fields, MinimaxAsk, CodedRefusal<number>> = {
  dialect: { ...minimaxDialect, wrongModel: (model) => invalid(`model ${model} does not speak`) },
  capabilities: ['speech'],
  open: openFields(() => invalid('the body is no object')),
  read: readAsk,
  make(ask, call) {
    const units = reportedUnits(ask.steering, 'characters', { characters: hanTwice(ask.text) })
    if (ask.isStreaming) {
      const texts = eventTexts(ask, call, units)
      const body = { kind: 'pieces', texts, encode: eventEncoder(ask.steering), error: writeTrouble } as const
      return { units, headers: commonHeaders(call, 'text/event-stream'), body }
    }
    const { steering, format, ms } = ask
    const audio =
      ask.delivery === 'url' ? linkAudio(format, ms, { call, steering }) : recordAudio(format, ms).toString('hex')
    const text = JSON.stringify(writeAnswer(ask, call, audio, units))
    return { units, headers: commonHeaders(call), body: { kind: 'whole', text } }
  },
}

export const minimaxProtocol = endpointAt('/t2a_v2', minimaxSpeech)

const charactersMax = 10_000
const formats: readonly AudioFormat[] = ['mp3', 'pcm', 'flac', 'wav']
const rates: ReadonlySet<unknown> = new Set([8_000, 16_000, 22_050, 24_000, 32_000, 44_100])

function readAsk(body: Fields, model: SandboxModel): MinimaxAsk {
  const text = textIn(body.text)
  if (text === '') throw invalid('text is empty')
  if (Array.from(text).length >= charactersMax) throw invalid('text is too long')
  const isStreaming = body.stream === true
  if (isGiven(body.output_format) && body.output_format !== 'hex' && body.output_format !== 'url') {
    throw invalid('output_format')
  }
  return {
    model,
    steering: readSteering(text),
    text,
    format: readFormat(fieldsIn(body.audio_setting), isStreaming),
    ms: spokenMs(text, readVoice(fieldsIn(body.voice_setting)).speed),
    delivery: body.output_format === 'url' ? 'url' : 'hex',
    isStreaming,
    repeats: fieldsIn(body.stream_options).exclude_aggregated_audio !== true,
  }
}

/** Built-in voices with names shorter than those allowed for cloned voices. */
const shortVoices: ReadonlySet<string> = new Set(['Arnold', 'Grinch', 'Rudolph'])

/** Voices belong to the account, so every name that could be a voice is accepted. */
function readVoice({ voice_id: voice, speed = 1 }: Fields): { speed: number } {
  const name = textIn(voice)
  if (name === '') throw invalid('voice_id is empty')
  if (!/^[a-z].{7,}$/i.test(name) && !shortVoices.has(name)) throw errorForCode('2054')
  if (typeof speed !== 'number' || speed < 0.5 || speed > 2) throw invalid('speed')
  return { speed }
}

function readFormat({ format: asked = 'mp3', sample_rate: rate = 32_000 }: Fields, isStreaming: boolean): AudioFormat {
  const format = formats.find((known) => known === asked)
  // A stream cannot know the lengths that a WAV header needs.
  if (!format || (isStreaming && format === 'wav')) throw invalid('format')
  if (!rates.has(rate)) throw invalid('sample_rate')
  return format
}

/** Status 2 means complete; the counts come with it. */
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
    ...writeBase(),
  }
}

/** The last event repeats the whole audio unless the request excludes it. */
function* eventTexts(ask: MinimaxAsk, call: Call, units: Units): Generator<string, void> {
  const recorded = recordAudio(ask.format, ask.ms)
  for (const piece of piecesOf(recorded)) {
    const audio = Buffer.from(piece, 'latin1').toString('hex')
    yield JSON.stringify({
      data: { audio, status: 1, ced: '' },
      trace_id: seededId('', hashText(call.text)),
      ...writeBase(0, ''),
    })
  }
  yield JSON.stringify(writeAnswer(ask, call, ask.repeats ? recorded.toString('hex') : '', units))
}
