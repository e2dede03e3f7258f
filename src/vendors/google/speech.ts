import { GatewayError } from '../../base/errors.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import type { AudioForm } from '../../capabilities/speech.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { isRate } from '../../media/wav.ts'
import { readUsage } from '../../wire/gemini/read-usage.ts'
import { objectIn, objectsIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { audioInEvents } from '../speech.ts'
import type { AudioReader, SpeechAdapter } from '../vendor.ts'
import { contentRefused } from '../verdicts.ts'
import { callTo } from './call.ts'
import { statusOf } from './explain.ts'

/** Google's speech: ordinary content generation whose output is audio. */
export const speech: SpeechAdapter = {
  say(ask, piece, context) {
    const voiceConfig = { prebuiltVoiceConfig: { voiceName: ask.voice } }
    const text = ask.instructions === undefined ? piece : `${ask.instructions}: ${piece}`
    const body = {
      contents: [{ role: 'user', parts: [{ text }] }],
      generationConfig: {
        responseModalities: ['AUDIO'],
        ...(ask.voice !== undefined && { speechConfig: { voiceConfig } }),
      },
    }
    return { call: callTo('streamGenerateContent?alt=sse', body, context), openReader: () => new EventReader() }
  },
}

const defaultRate = 24_000

/** Each event is a whole response that holds only what is new; its usage counts everything so far. */
class EventReader implements AudioReader {
  readonly tokensPerSecond = 25
  form: AudioForm = { kind: 'pcm', rate: defaultRate }
  usage: Usage | undefined
  ended = false
  refusal: AudioReader['refusal']
  readonly read = audioInEvents((event) => this.#take(event))
  #hasAudio = false

  #take(event: Uint8Array): Uint8Array {
    const data = dataOf(event)
    const answer = objectIn(parseLoosely(data))
    if (isObject(answer['error'])) {
      this.refusal ??= { status: statusOf(answer['error']), body: data }
      return new Uint8Array()
    }
    this.usage = readUsage(answer['usageMetadata'], 'AUDIO') ?? this.usage
    const [candidate = {}] = objectsIn(answer['candidates'])
    const audio = this.#audioOf(candidate)
    this.#hasAudio ||= audio.length > 0
    if (blockIn(answer) !== '' || typeof candidate['finishReason'] === 'string') {
      if (!this.#hasAudio) throw withheld(answer, candidate)
      // With any other reason the audio is cut off: at the token limit, by a filter, or as OTHER within a long stream.
      this.ended = candidate['finishReason'] === 'STOP'
    }
    return audio
  }

  #audioOf({ content }: JsonObject): Uint8Array {
    const parts = objectsIn(objectIn(content)['parts']).map(({ inlineData }) => objectIn(inlineData))
    return Buffer.concat(
      parts.map(({ mimeType, data }) => {
        // Raw samples without a header: their rate is in their media type, `audio/L16;codec=pcm;rate=24000`.
        const rate = Number(/\brate=(\d+)/.exec(textIn(mimeType))?.[1] ?? defaultRate)
        if (isRate(rate) && !this.#hasAudio) this.form = { kind: 'pcm', rate }
        return Buffer.from(textIn(data), 'base64')
      }),
    )
  }
}

/** Why a filter blocked the text; empty where none did. Feedback may also be just ratings. */
function blockIn({ promptFeedback }: JsonObject): string {
  return textIn(objectIn(promptFeedback)['blockReason'])
}

/** No audio came. Where a filter is the reason, that is a refusal of this request; otherwise it is a failure. */
function withheld(answer: JsonObject, { finishReason }: JsonObject): GatewayError {
  const reason = blockIn(answer) || textIn(finishReason)
  if (reason === 'STOP' || reason === 'MAX_TOKENS' || reason === 'OTHER') {
    return new GatewayError('upstream-failed', "The model's vendor sent no audio.")
  }
  const message = `The model's vendor refused to speak this text: ${reason}.`
  return new GatewayError('upstream-rejected', message, { code: contentRefused })
}
