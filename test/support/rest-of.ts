import type { EventSplitter } from '../../src/base/sse.ts'

const end = 'x\n\n'

/** What a splitter has kept back, found by feeding it the end of an event; '' if the stream ended with an event. */
export function restOf(splitter: EventSplitter): string {
  return Buffer.concat(splitter.push(Buffer.from(end)))
    .toString()
    .slice(0, -end.length)
}
