import { badRequest } from '../../base/errors.ts'
import type { AudioForm, SpeechAsk } from '../../capabilities/speech.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn } from '../../wire/loose.ts'
import { jsonCall } from '../json-call.ts'
import { audioBodyReader, commonRate } from '../speech.ts'
import type { VendorResponse, SpeechAdapter } from '../vendor.ts'

/** Audio as it is made; the voice is a part of the path, the format of the query. */
export const speech: SpeechAdapter = {
  say(ask, piece, context) {
    const { output, form } = formFor(ask)
    const url = `${context.baseUrl}/v1/text-to-speech/${voiceIn(ask)}/stream?output_format=${output}`
    const body = {
      text: piece,
      model_id: context.upstreamModel,
      // These replace the settings that the owner gave the voice, so they are sent only where the client gives a speed.
      ...(ask.speed !== undefined && { voice_settings: { speed: ask.speed } }),
    }
    return {
      call: jsonCall(url, body, context, { 'xi-api-key': context.credential }),
      openReader: (header) => ({ ...audioBodyReader(form), usage: usageIn(header) }),
    }
  },
}

/** The best quality that every plan includes. */
function formFor({ format }: SpeechAsk): { output: string; form: AudioForm } {
  if (format === 'mp3') return { output: 'mp3_44100_128', form: { kind: 'ready' } }
  return { output: `pcm_${commonRate}`, form: { kind: 'pcm', rate: commonRate } }
}

/**
 * The vendor decides which ids are voices, but a value that is no id at all would lead to another URL, or make one that
 * is too long for a server to read. The vendor's own ids have 20 characters.
 */
function voiceIn({ voice = '' }: SpeechAsk): string {
  if (/^\w{1,128}$/.test(voice)) return voice
  throw badRequest(
    "Unsupported value: 'voice' must be a voice id of the vendor with this model.",
    'voice',
    'unsupported_value',
  )
}

/** The characters that the vendor charges for, in either of the headers that it has used for them. */
function usageIn(header: VendorResponse['header']): Usage | undefined {
  const told = header('character-cost') ?? header('x-character-count') ?? ''
  return /^\d+$/.test(told) ? { character: countIn(Number(told)) } : undefined
}
