import type { EventSplitter } from '../../src/base/sse.ts'

const end = 'x\n\n'

/** What a splitter has kept back, seen by an end that is brought to it: '' where the stream ended with an event. */
export function restOf(splitter: EventSplitter): string {
  return Buffer.concat(splitter.push(Buffer.from(end)))
    .toString()
    .slice(0, -end.length)
}
