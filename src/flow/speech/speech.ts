import { asGatewayError, GatewayError } from '../../base/errors.ts'
import { zeroNano } from '../../base/money.ts'
import type { SpeechAsk, SpeechCodec } from '../../capabilities/speech.ts'
import type { Mp3Encoders } from '../../media/mp3.ts'
import { wavHead } from '../../media/wav.ts'
import { attemptRecord, discreet, final, logFailure, type CallParts, type Failed } from '../attempt.ts'
import type { Job } from '../job.ts'
import { costOf } from '../legs.ts'
import type { Outcome, Routed } from '../stages.ts'
import { traitsOf } from '../traits.ts'
import { SpeechRelay } from './relay.ts'
import { Shaper } from './shaper.ts'

/** Speech: said piece by piece, and sent as it is made. */
export function speechJob(codec: SpeechCodec, encoders: Mp3Encoders): Job {
  return {
    capability: 'speech',
    read(asked, lookUp) {
      const ask = codec.readAsk(asked, (id) => traitsOf(lookUp(id), id))
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

async function speak(parts: CallParts, routed: Routed, { ask, codec, encoders }: Asked): Promise<Outcome> {
  const adapter = routed.route.channel.vendor.speech
  if (adapter === undefined) throw new Error(`${routed.route.channel.vendor.id} does not speak`)
  const shaper = new Shaper(ask.stream ? ask.format : 'pcm', encoders)
  const relay = new SpeechRelay(parts, routed, { ask, codec, adapter, shaper })
  const failure = await relay.start()
  if (failure !== undefined) return failure
  const contentType = codec.contentTypeOf(ask)
  if (ask.stream) return { kind: 'streaming', relay, contentType }
  // Nobody has heard anything yet: a client that leaves ends the call.
  const leave = () => relay.abort()
  routed.signal.addEventListener('abort', leave, { once: true })
  try {
    if (routed.signal.aborted) leave()
    const body = wavOf(await readAll(relay), shaper)
    return { kind: 'answered', body, contentType, legs: relay.legs, failed: relay.failed }
  } catch (thrown) {
    relay.abort()
    return wasted(parts, routed, relay, asGatewayError(thrown))
  } finally {
    routed.signal.removeEventListener('abort', leave)
  }
}

// The longest input that is taken comes to 200 MB at an ordinary pace.
const soundBytesMax = 512 * 1024 * 1024

async function readAll(relay: SpeechRelay): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for (let chunk = await relay.next(); chunk !== undefined; chunk = await relay.next()) {
    chunks.push(chunk)
    length += chunk.length
    if (length > soundBytesMax) throw new GatewayError('upstream-failed', "The model's vendor sent too long a sound.")
  }
  return Buffer.concat(chunks)
}

/** One head in front of all the samples, with their true length. */
function wavOf(sound: Uint8Array, { samples }: Shaper): Uint8Array {
  if (samples === undefined) throw new GatewayError('upstream-failed', "The model's vendor sent no sound.")
  return Buffer.concat([wavHead(samples, sound.length), sound])
}

/** Half a file is of no use to anyone; what it cost is our loss. */
function wasted(parts: CallParts, routed: Routed, relay: SpeechRelay, error: GatewayError): Failed {
  const last = final(discreet(error, routed))
  logFailure(parts, routed, 200, last)
  const lost = relay.legs.map((leg) => {
    const counted = leg.count()
    const vendorCost = counted === undefined ? zeroNano : costOf(counted, routed.model.costs)
    return attemptRecord({ ...routed, attemptId: leg.attemptId }, { status: 200, vendorCost, delivered: false })
  })
  return { kind: 'failed', error: last, retry: 'no', attempts: [...relay.failed, ...lost] }
}
