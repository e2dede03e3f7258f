import { type Frame, free } from './event-stream.ts'
import type { Steering } from './steering.ts'

const framesBeforeError = 3
const framesBeforeMalformed = 2

/** The text a protocol sends instead of an event. */
type Disturbances = { error: () => string; malformed: () => string }

/** The stream unchanged, or ended, cut or spoilt as the steering asks. */
export function disturb(
  regular: Generator<Frame, void>,
  steering: Steering,
  disturbances: Disturbances,
): Generator<Frame, void> {
  const isDisturbed =
    steering.number('cut') !== undefined ||
    steering.number('eof') !== undefined ||
    steering.has('malformed') ||
    steering.has('midstream-error')
  return isDisturbed ? disturbedFrames(regular, steering, disturbances) : regular
}

function* disturbedFrames(
  regular: Iterable<Frame>,
  steering: Steering,
  { error, malformed }: Disturbances,
): Generator<Frame, void> {
  const cutAt = steering.number('cut') ?? Infinity
  const endAt = steering.number('eof') ?? Infinity
  const errorAt = steering.has('midstream-error') ? framesBeforeError : Infinity
  let malformedAt = steering.has('malformed') ? framesBeforeMalformed : Infinity
  let sent = 0
  for (const frame of regular) {
    if (frame.kind !== 'framing') {
      if (sent >= endAt) return
      if (sent >= cutAt) {
        yield free('cut', '')
        return
      }
      if (sent >= errorAt) {
        yield free('content', error())
        return
      }
      if (sent >= malformedAt) {
        malformedAt = Infinity
        yield free('content', malformed())
      }
    }
    if (frame.kind === 'content') sent += 1
    yield frame
  }
}
