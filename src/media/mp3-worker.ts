import { createMp3Encoder, type WasmMediaEncoder } from 'wasm-media-encoders'
import type { Mp3Call, Mp3Reply } from './mp3.ts'

/** A thread of its own: encoding ten seconds of speech takes fifty milliseconds, in which no stream would move. */
declare const self: {
  addEventListener(type: 'message', listener: (event: { data: Mp3Call }) => void): void
  postMessage(reply: Mp3Reply): void
}

type Encoder = WasmMediaEncoder<'audio/mpeg'>
type Session = { readonly encoder: Encoder; readonly channels: 1 | 2 }

const sessions = new Map<number, Session>()
/** Encoders that have finished and can be reused. Each has its own memory, so only a few are kept. */
const idle: Encoder[] = []
const idleMax = 4

// Speech at 24 kHz gains nothing from a higher bit rate.
const kilobits = 96

async function run(call: Mp3Call): Promise<Uint8Array> {
  switch (call.method) {
    case 'open': {
      const encoder = idle.pop() ?? (await createMp3Encoder())
      encoder.configure({ sampleRate: call.rate, channels: call.channels, bitrate: kilobits })
      sessions.set(call.session, { encoder, channels: call.channels })
      return new Uint8Array()
    }
    case 'encode': {
      const session = sessions.get(call.session)
      if (session === undefined) throw new Error('no such encoding')
      // The encoder gives a view of its own memory, which the next call overwrites.
      return session.encoder.encode(planesOf(call.samples, session.channels)).slice()
    }
    case 'end': {
      const last = sessions.get(call.session)?.encoder.finalize().slice() ?? new Uint8Array()
      release(call.session)
      return last
    }
    case 'close':
      release(call.session)
      return new Uint8Array()
  }
}

function release(id: number): void {
  const session = sessions.get(id)
  sessions.delete(id)
  if (session !== undefined && idle.length < idleMax) idle.push(session.encoder)
}

function planesOf(samples: Uint8Array, channels: 1 | 2): Float32Array[] {
  const view = new DataView(samples.buffer, samples.byteOffset, samples.byteLength)
  const frames = Math.floor(samples.byteLength / 2 / channels)
  return Array.from({ length: channels }, (_, channel) => {
    const plane = new Float32Array(frames)
    for (let frame = 0; frame < frames; frame++) {
      plane[frame] = view.getInt16((frame * channels + channel) * 2, true) / 32_768
    }
    return plane
  })
}

// Calls run one after another, because an encoder must be open before it encodes.
let last: Promise<unknown> = Promise.resolve()

self.addEventListener('message', ({ data: call }) => {
  last = last
    .then(() => run(call))
    .then(
      (bytes) => self.postMessage({ id: call.id, kind: 'done', bytes }),
      (error: unknown) => self.postMessage({ id: call.id, kind: 'failed', message: String(error) }),
    )
})
