import { breakOff } from './event-stream.ts'
import type { Steering } from './steering.ts'
import { tick } from './wait.ts'

type PlainParts = {
  text: string
  headers: Headers
  steering: Steering
  signal: AbortSignal
  /** The position in the text, inside a string, at which an endless answer continues for ever. */
  openAt: number
  /** Called exactly once. An endless answer never completes, so hanging up on it (499) costs nothing. */
  settle: (status: 200 | 499) => void
}

/** Sends a body in one piece, unless steering asks for a broken or endless one. */
export function plainAnswer({ text, headers, steering, signal, openAt, settle }: PlainParts): Response {
  if (steering.has('endless')) {
    return new Response(
      endlessBody(text.slice(0, openAt), signal, () => settle(499)),
      { headers },
    )
  }
  settle(200)
  const half = text.slice(0, text.length / 2)
  if (steering.number('cut') !== undefined) return new Response(brokenBody(half), { headers })
  if (steering.number('eof') !== undefined || steering.has('malformed')) return new Response(half, { headers })
  return new Response(text, { headers })
}

function brokenBody(text: string): ReadableStream<Uint8Array> {
  let isSent = false
  return new ReadableStream({
    async pull(controller) {
      if (isSent) return breakOff(controller)
      isSent = true
      controller.enqueue(new TextEncoder().encode(text))
    },
  })
}

function endlessBody(start: string, signal: AbortSignal, onHangUp: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const filler = encoder.encode('and on and on '.repeat(64))
  let isSettled = false
  let isStarted = false
  const hangUp = (): void => {
    if (isSettled) return
    isSettled = true
    onHangUp()
  }
  signal.addEventListener('abort', hangUp)
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(isStarted ? filler : encoder.encode(start))
      isStarted = true
      return tick()
    },
    cancel: hangUp,
  })
}
