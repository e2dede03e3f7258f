import { GatewayError } from '../../base/errors.ts'
import { dataOf } from '../../base/sse.ts'
import type { AudioForm, SpeechAsk } from '../../capabilities/speech.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn, objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { namespacedLabels } from '../../wire/openai/pass-ask.ts'
import { jsonCallAt, type EndpointOf } from '../json-call.ts'
import { audioBodyReader, audioInEvents, commonRate } from '../speech.ts'
import type { AudioReader, SpeechAdapter } from '../vendor.ts'

/** Speech in the common protocol: bare audio, or events where only those report the usage. */
export function speechAt(reach: EndpointOf): SpeechAdapter {
  return {
    say(ask, piece, context) {
      const { format, form } = formFor(ask)
      const asEvents = ask.soldBy === 'token'
      const body = {
        ...ask.extras,
        ...namespacedLabels(ask.extras, context),
        model: context.upstreamModel,
        input: piece,
        voice: ask.voice,
        response_format: format,
        instructions: ask.instructions,
        speed: ask.speed,
        ...(asEvents && { stream_format: 'sse' }),
      }
      return {
        call: jsonCallAt(reach, '/audio/speech', body, context),
        // A relay that does not know `stream_format` answers with bare audio all the same.
        openReader: (header) =>
          asEvents && !isAudio(header('content-type')) ? new EventReader(form) : audioBodyReader(form),
      }
    },
  }
}

function isAudio(mediaType: string | null): boolean {
  return mediaType?.startsWith('audio/') === true
}

/** The format to ask for: the client's where the vendor has it, otherwise one that can be converted into it. */
function formFor({ format, limits: { formats } }: SpeechAsk): { format: string; form: AudioForm } {
  const isMade = formats.includes(format)
  // A wav header holds the length, which a stream does not know yet, so the header is read and written anew.
  if (isMade && format !== 'wav' && format !== 'pcm') return { format, form: { kind: 'ready' } }
  if (format !== 'pcm' && formats.includes('wav')) return { format: 'wav', form: { kind: 'wav' } }
  return { format: 'pcm', form: { kind: 'pcm', rate: commonRate } }
}

/** Reads `speech.audio.delta` events, each with a piece of audio, and `speech.audio.done` with the usage. */
class EventReader implements AudioReader {
  readonly form: AudioForm
  readonly refusal = undefined
  usage: Usage | undefined
  ended = false
  readonly read = audioInEvents((event) => this.#take(event))

  constructor(form: AudioForm) {
    this.form = form
  }

  #take(event: Uint8Array): Uint8Array {
    const { type, audio, usage, error } = objectIn(parseLoosely(dataOf(event)))
    if (type === 'speech.audio.delta') return Buffer.from(textIn(audio), 'base64')
    if (type === 'speech.audio.done') {
      this.ended = true
      this.usage = readUsage(objectIn(usage))
    }
    if (error !== undefined) throw new GatewayError('upstream-failed', "The model's vendor broke off the audio.")
    return new Uint8Array()
  }
}

function readUsage({
  input_tokens: input,
  output_tokens: output,
}: Readonly<Record<string, unknown>>): Usage | undefined {
  if (typeof input !== 'number' || typeof output !== 'number') return undefined
  return { input: countIn(input), audioOutput: countIn(output) }
}
