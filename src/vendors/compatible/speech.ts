import { GatewayError } from '../../base/errors.ts'
import { dataOf, EventSplitter } from '../../base/sse.ts'
import type { SoundForm, SpeechAsk } from '../../capabilities/speech.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn, objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import type { SoundReader, SpeechAdapter } from '../vendor.ts'
import { jsonCallAt, type Reach } from '../json-call.ts'

/** Speech in the common protocol: bare sound, or events where only those tell what was used. */
export function speechAt(reach: Reach): SpeechAdapter {
  return {
    say(ask, piece, context) {
      const { format, form } = formFor(ask)
      const asEvents = ask.soldBy === 'token'
      const body = {
        ...ask.extras,
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
        openReader: () => (asEvents ? new EventReader(form) : bareReader(form)),
      }
    },
  }
}

/** What the vendor is asked for: the client's format where it has it, else sound that can be made into it. */
function formFor({ format, limits: { formats } }: SpeechAsk): { format: string; form: SoundForm } {
  const isMade = formats.includes(format)
  // The head of a wav says its length, which a stream does not know: it is read, and written anew.
  if (isMade && format !== 'wav' && format !== 'pcm') return { format, form: { kind: 'ready' } }
  if (format !== 'pcm' && formats.includes('wav')) return { format: 'wav', form: { kind: 'wav' } }
  return { format: 'pcm', form: { kind: 'pcm', rate: commonRate } }
}

/** Of the common protocol's bare samples. */
export const commonRate = 24_000

/** The body is the sound, and its end is the end. Nothing is told of usage, and a count of ours is not the vendor's. */
export function bareReader(form: SoundForm): SoundReader {
  return { form, usage: undefined, ended: true, refusal: undefined, read: (bytes) => bytes }
}

// A second of bare samples is 64 KiB as base64; a vendor that does not split its sound sends minutes at once.
export const soundEventBytesMax = 64 * 1024 * 1024

/** `speech.audio.delta` with a piece of sound each, and `speech.audio.done` with the usage. */
class EventReader implements SoundReader {
  readonly form: SoundForm
  readonly refusal = undefined
  usage: Usage | undefined
  ended = false
  readonly #splitter = new EventSplitter(soundEventBytesMax)

  constructor(form: SoundForm) {
    this.form = form
  }

  read(bytes: Uint8Array): Uint8Array {
    return Buffer.concat(this.#splitter.push(bytes).map((event) => this.#take(event)))
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
