import { EventSplitter } from '../base/sse.ts'
import type { AudioForm } from '../capabilities/speech.ts'
import type { AudioReader } from './vendor.ts'

/** The sample rate of the common protocol's `pcm`. */
export const commonRate = 24_000

/** The body is the audio, and ends with it. It reports no usage, and a count of ours would not be the vendor's. */
export function audioBodyReader(form: AudioForm): AudioReader {
  return { form, usage: undefined, ended: true, refusal: undefined, read: (bytes) => bytes }
}

// A second of raw samples is 64 KiB in base64; a vendor that does not split its audio sends minutes at once.
const audioEventBytesMax = 64 * 1024 * 1024

/** Reads audio that comes in events: `take` gives the audio in each of them. */
export function audioInEvents(take: (event: Uint8Array) => Uint8Array): AudioReader['read'] {
  const splitter = new EventSplitter(audioEventBytesMax)
  return (bytes) => Buffer.concat(splitter.push(bytes).map((event) => take(event)))
}
