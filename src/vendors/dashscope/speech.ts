import { dataOf } from '../../base/sse.ts'
import type { JsonObject } from '../../base/json.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import type { AudioForm, SpeechAsk } from '../../capabilities/speech.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn, objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { bearer, jsonCall } from '../json-call.ts'
import { audioInEvents, commonRate } from '../speech.ts'
import type { AudioReader, SpeechAdapter } from '../vendor.ts'

/**
 * Alibaba's speech, in its own protocol and as events, so that samples arrive as they are made. Asked for as a whole it
 * would be a link to a file that has to be fetched, and no audio could be sent before the file is finished.
 */
export const speech: SpeechAdapter = {
  say(ask, piece, context) {
    const { voice, instructions, extras } = ask
    const input = {
      text: piece,
      voice,
      language_type: extras['language_type'],
      ...(instructions !== undefined && { instructions, optimize_instructions: extras['optimize_instructions'] }),
    }
    const url = `${context.baseUrl}/api/v1/services/aigc/multimodal-generation/generation`
    const headers = { ...bearer(context), 'x-dashscope-sse': 'enable' }
    return {
      call: jsonCall(url, { model: context.upstreamModel, input }, context, headers),
      openReader: () => new EventReader(ask.soldBy),
    }
  },
}

class EventReader implements AudioReader {
  readonly form: AudioForm = { kind: 'pcm', rate: commonRate }
  usage: Usage | undefined
  ended = false
  refusal: AudioReader['refusal']
  readonly read = audioInEvents((event) => this.#take(event))
  readonly #soldBy: SpeechAsk['soldBy']

  constructor(soldBy: SpeechAsk['soldBy']) {
    this.#soldBy = soldBy
  }

  #take(event: Uint8Array): Uint8Array {
    const data = dataOf(event)
    const { code, output, usage } = objectIn(parseLoosely(data))
    // A refused request still has a 2xx status; the true status stands in a comment line of the event.
    if (textIn(code) !== '') {
      this.refusal ??= { status: statusIn(event), body: data }
      return new Uint8Array()
    }
    const { audio, finish_reason: reason } = objectIn(output)
    this.usage = this.#readUsage(objectIn(usage)) ?? this.usage
    // Before the last event the reason is the string "null".
    if (reason === 'stop') this.ended = true
    return Buffer.from(textIn(objectIn(audio)['data']), 'base64')
  }

  #readUsage({ characters, input_tokens: input, output_tokens: output }: JsonObject): Usage | undefined {
    if (this.#soldBy === 'character') {
      return typeof characters === 'number' ? { character: countIn(characters) } : undefined
    }
    return typeof output === 'number' ? { input: countIn(input), audioOutput: countIn(output) } : undefined
  }
}

function statusIn(event: Uint8Array): number {
  const status = /^:HTTP_STATUS\/(\d{3})/m.exec(decodeUtf8(event))?.[1]
  return status === undefined ? 500 : Number(status)
}
