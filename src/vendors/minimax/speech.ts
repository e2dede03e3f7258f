import { dataOf } from '../../base/sse.ts'
import type { AudioForm, SpeechAsk } from '../../capabilities/speech.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn, objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { bearer, jsonCall } from '../json-call.ts'
import { audioInEvents, commonRate } from '../speech.ts'
import type { AudioReader, SpeechAdapter } from '../vendor.ts'
import { statusOf } from './explain.ts'

/** MiniMax's speech, in its own protocol and as events: audio in hexadecimal digits, as it is made. */
export const speech: SpeechAdapter = {
  say(ask, piece, context) {
    const form = formFor(ask)
    const body = {
      model: context.upstreamModel,
      text: piece,
      stream: true,
      // Otherwise the last event repeats the whole audio.
      stream_options: { exclude_aggregated_audio: true },
      voice_setting: { voice_id: ask.voice, speed: ask.speed },
      audio_setting:
        form.kind === 'pcm' ? { format: 'pcm', sample_rate: form.rate, channel: 1 } : { format: ask.format },
      output_format: 'hex',
    }
    return {
      call: jsonCall(`${context.baseUrl}/t2a_v2`, body, context, bearer(context)),
      openReader: () => new EventReader(form),
    }
  },
}

/** MiniMax streams no wav, whatever the catalogue lists, so a wav is made from raw samples. */
function formFor({ format }: SpeechAsk): AudioForm {
  return format === 'wav' || format === 'pcm' ? { kind: 'pcm', rate: commonRate } : { kind: 'ready' }
}

/** The `status` of an event: 1 is a piece of the audio, 2 its end. */
const complete = 2

class EventReader implements AudioReader {
  readonly form: AudioForm
  usage: Usage | undefined
  ended = false
  refusal: AudioReader['refusal']
  readonly read = audioInEvents((event) => this.#take(event))
  #hasAudio = false

  constructor(form: AudioForm) {
    this.form = form
  }

  /** A refusal before the stream begins is no event, but one JSON object. */
  statusOf(body: string): number | undefined {
    return statusOf(objectIn(parseLoosely(body)))
  }

  #take(event: Uint8Array): Uint8Array {
    const text = dataOf(event)
    const json = objectIn(parseLoosely(text))
    const status = statusOf(json)
    if (status !== undefined) {
      this.refusal ??= { status, body: text }
      return new Uint8Array()
    }
    const { audio, status: stage } = objectIn(json['data'])
    const { usage_characters: characters } = objectIn(json['extra_info'])
    if (typeof characters === 'number') this.usage = { character: countIn(characters) }
    if (stage === complete) this.ended = true
    // A server that does not know `exclude_aggregated_audio` repeats the whole audio at the end.
    if (stage === complete && this.#hasAudio) return new Uint8Array()
    const bytes = Buffer.from(textIn(audio), 'hex')
    this.#hasAudio ||= bytes.length > 0
    return bytes
  }
}
