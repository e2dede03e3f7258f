import { asGatewayError, forbidRetry, GatewayError } from '../../base/errors.ts'
import type { Nano } from '../../base/money.ts'
import { priceOfParts } from '../../billing/price.ts'
import { charactersOf, type SpeechAsk, type SpeechCodec } from '../../capabilities/speech.ts'
import type { Mp3Encoders } from '../../media/mp3.ts'
import { wavHead, wavHeadBytes } from '../../media/wav.ts'
import { wastedAttempts } from '../attempt-records.ts'
import type { CallParts } from '../attempt.ts'
import { logFailure, withSecretsScrubbed } from '../failed.ts'
import type { Job } from '../job.ts'
import type { Failed, Outcome, Routed } from '../stages.ts'
import { AudioConverter } from './audio-converter.ts'
import { SpeechRelay } from './relay.ts'

/** Speech: spoken piece by piece, and sent as it is made. */
export function speechJob(codec: SpeechCodec, encoders: Mp3Encoders): Job {
  return {
    capability: 'speech',
    read(asked, lookUp) {
      const ask = codec.readAsk(asked, lookUp)
      return {
        ask,
        estimateInput: () => codec.estimateTokens(ask.pieces.join('')),
        isServedBy: (vendor) => vendor.speech !== undefined,
        call: (parts, routed) => speak(parts, routed, { ask, codec, encoders }),
        writeStreamError: (error) => codec.writeStreamError(ask, error),
      }
    },
  }
}

type Asked = { readonly ask: SpeechAsk; readonly codec: SpeechCodec; readonly encoders: Mp3Encoders }

/** Three minutes of wav, more than most answers. A longer one is sent as it is made. */
const wholeBytesMax = 8 * 1024 * 1024

async function speak(parts: CallParts, routed: Routed, { ask, codec, encoders }: Asked): Promise<Outcome> {
  const adapter = routed.route.channel.vendor.speech
  if (adapter === undefined) throw new Error(`${routed.route.channel.vendor.id} does not speak`)
  const converter = new AudioConverter(ask.format, encoders)
  const relay = new SpeechRelay(parts, routed, { ask, codec, adapter, converter })
  const failure = await relay.start()
  if (failure !== undefined) return failure
  const streaming = { kind: 'streaming', relay, contentType: codec.contentTypeOf(ask) } as const
  // Until some of it is ready to go, a client that leaves ends the call.
  const leave = () => relay.abort()
  routed.signal.addEventListener('abort', leave, { once: true })
  try {
    if (routed.signal.aborted) leave()
    const prepared = await relay.prepare(ask.stream ? 1 : wholeBytesMax)
    if (ask.stream || prepared === 'part') return { ...streaming, ...costAhead(routed, ask) }
    const { legs, failed } = relay
    return { ...streaming, kind: 'answered', body: wavOf(relay.takePrepared(), converter), legs, failed }
  } catch (thrown) {
    relay.abort()
    // The client has left: metering finds that out, and charges for what was read from the vendor.
    if (routed.signal.aborted) return streaming
    return wasted(parts, routed, relay, asGatewayError(thrown))
  } finally {
    routed.signal.removeEventListener('abort', leave)
  }
}

/** Sold by the character, a piece costs the same however its audio ends. Of several, those never begun cost nothing. */
function costAhead({ model }: Routed, { soldBy, pieces }: SpeechAsk): { readonly cost?: Nano } {
  const [piece, ...others] = pieces
  if (soldBy !== 'character' || piece === undefined || others.length > 0) return {}
  return { cost: priceOfParts([{ character: charactersOf(piece) }], model.prices) }
}

/** Replaces the header that was written for a stream by one with the true length of the samples. */
function wavOf(chunks: readonly Uint8Array[], { samples }: AudioConverter): Uint8Array {
  if (samples === undefined) throw new GatewayError('bug', 'a wav was made of no samples')
  const file = Buffer.concat(chunks)
  file.set(wavHead(samples, file.length - wavHeadBytes))
  return file
}

/** Half a file is of no use, so nothing of it was sent; what the calls cost is our loss. */
function wasted(parts: CallParts, routed: Routed, relay: SpeechRelay, error: GatewayError): Failed {
  const last = forbidRetry(withSecretsScrubbed(error, routed))
  logFailure(parts, routed, 200, last)
  const attempts = [...relay.failed, ...wastedAttempts(routed, relay.legs)]
  return { kind: 'failed', error: last, retry: 'no', attempts }
}
