import type { Units } from '../bill.ts'
import { isGiven, textIn } from '../fields.ts'
import { type AudioFormat, recordAudio } from '../files/audio.ts'
import { linkAudio, linkExpiry } from '../files/results.ts'
import { countTokens } from '../media/common.ts'
import { reportedUnits, usageUnlessHidden } from '../media/reported.ts'
import type { ServedAsk, Answer } from '../serve.ts'
import type { SandboxModel } from '../model.ts'
import type { Call } from '../protocol.ts'
import { hanTwice, piecesOf, spokenMs } from '../speech/speak.ts'
import { readSteering } from '../steering.ts'
import {
  errorBody,
  errorEvent,
  errorForStatus,
  invalidForAlgorithm,
  requestIdFor,
  resultEvent,
  wantsEvents,
} from './errors.ts'
import { type Native, nativeHeaders } from './native.ts'
import { hasVoice } from './voices.ts'

/** A text to speak. */
export type SpeechAsk = ServedAsk & { readonly text: string; readonly ms: number; readonly format: AudioFormat }

const charactersMax = 600
const formats: readonly AudioFormat[] = ['wav', 'mp3', 'pcm', 'opus']

/** A link to a file, or a stream of samples with the link at its end. */
export function makeSpeech(ask: SpeechAsk, call: Call): Answer {
  const units = countUnits(ask)
  if (wantsEvents(call.request)) return makeEvents(ask, call, units)
  const text = JSON.stringify(writeSpeech(ask, call, { data: '', isLast: true, units }))
  return { units, headers: nativeHeaders(call), body: { kind: 'whole', text } }
}

export function readSpeech({ input, parameters }: Native, model: SandboxModel): SpeechAsk {
  const { text, voice, language_type: language, format } = { ...parameters, ...input }
  if (typeof text !== 'string' || text === '') throw invalidForAlgorithm('Field required: input.text')
  const { length } = Array.from(text)
  if (model.model.startsWith('qwen') && length > charactersMax) {
    throw invalidForAlgorithm(`Range of input length should be [0, ${charactersMax}]`)
  }
  if (!isGiven(voice)) throw invalidForAlgorithm('Field required: input.voice')
  if (!hasVoice(model.model, textIn(voice))) throw invalidForAlgorithm(`Voice '${textIn(voice)}' is not supported.`)
  if (isGiven(language) && !languages.has(textIn(language))) {
    throw invalidForAlgorithm(`language_type '${textIn(language)}' is not supported.`)
  }
  const chosen = formats.find((known) => known === format)
  if (isGiven(format) && chosen === undefined) throw invalidForAlgorithm(`format '${textIn(format)}' is not supported.`)
  return {
    model,
    steering: readSteering(textIn(input.instructions), text),
    text,
    ms: spokenMs(text),
    // Qwen3-TTS has no such field and always gives WAV.
    format: model.model.startsWith('qwen3-tts') ? 'wav' : (chosen ?? 'wav'),
  }
}

// prettier-ignore
const languages = new Set([
  'Auto', 'Chinese', 'English', 'German', 'Italian', 'Portuguese', 'Spanish', 'Japanese', 'Korean', 'French', 'Russian',
])

/** The first line of models is sold by tokens, 50 per second of audio; all others by the character. */
function countUnits({ model, steering, text, ms }: SpeechAsk): Units {
  if (!model.model.startsWith('qwen-tts')) return reportedUnits(steering, 'characters', { characters: hanTwice(text) })
  return reportedUnits(steering, 'audioOutput', { input: countTokens(text), audioOutput: Math.ceil(ms / 20) })
}

type Told = { readonly data: string; readonly isLast: boolean; readonly units: Units }

/** Before the last event, `finish_reason` is the string "null" and there is no link. */
function writeSpeech(ask: SpeechAsk, call: Call, { data, isLast, units }: Told): unknown {
  const { steering, format, ms } = ask
  const { characters = 0, input, audioOutput = 0 } = units
  const expiresAt = linkExpiry(steering)
  const url = isLast ? linkAudio(format, ms, { call, steering }) : ''
  const requestId = requestIdFor(call.text)
  return {
    output: {
      finish_reason: isLast ? 'stop' : 'null',
      audio: { data, url, id: `audio_${requestId}`, expires_at: expiresAt },
    },
    ...usageUnlessHidden(steering, { characters, input_tokens: input, output_tokens: audioOutput }),
    request_id: requestId,
  }
}

function makeEvents(ask: SpeechAsk, call: Call, units: Units): Answer {
  return {
    units,
    headers: nativeHeaders(call, 'text/event-stream;charset=UTF-8'),
    body: {
      kind: 'pieces',
      texts: eventTexts(ask, call, units),
      encode: ({ text }) => Buffer.from(text),
      error: () => errorEvent(0, 500, errorBody(errorForStatus(500), requestIdFor(call.text))),
    },
  }
}

/** Each event holds a quarter of a second of samples. */
function* eventTexts(ask: SpeechAsk, call: Call, units: Units): Generator<string, void> {
  let id = 0
  for (const piece of piecesOf(recordAudio('pcm', ask.ms), 12_000)) {
    id += 1
    const data = Buffer.from(piece, 'latin1').toString('base64')
    yield resultEvent(id, writeSpeech(ask, call, { data, isLast: false, units }))
  }
  yield resultEvent(id + 1, writeSpeech(ask, call, { data: '', isLast: true, units }))
}
