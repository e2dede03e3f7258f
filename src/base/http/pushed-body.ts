import { wholeOf, type Bytes } from '../spliced.ts'

/** Where a pushed body goes: to the client's connection, or to a reader in this process. */
export type Sink = {
  /** False where the reader is behind: the bytes wait in memory, and `drained` follows when there is room again. */
  readonly write: (bytes: Bytes) => boolean // a property, see `Outlet`
  /** The body is complete. */
  end(): void
  /** The body ends without being complete, and the reader is to notice that. One in this process is told why. */
  cut(why?: unknown): void
}

/** The body of a response that is written as it comes into being. */
export type PushedBody = {
  /** Called once, when the sink is ready. */
  begin(sink: Sink): void
  /** The sink has room again, after a write for which it had none. */
  drained(): void
  /** The reader has left before the end. */
  left(): void
}

// As much as the system takes of a socket before its reader is behind.
const unreadBytesMax = 64 * 1024

/** A pushed body as a stream of the web. */
export function streamOf(body: PushedBody): ReadableStream<Uint8Array> {
  let isBehind = false
  let isLeft = false
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        body.begin({
          write(bytes) {
            if (isLeft) return false
            controller.enqueue(wholeOf(bytes))
            isBehind = (controller.desiredSize ?? 0) <= 0
            return !isBehind
          },
          end: () => isLeft || controller.close(),
          cut: (why) => controller.error(why),
        })
      },
      pull() {
        if (!isBehind) return
        isBehind = false
        body.drained()
      },
      cancel() {
        isLeft = true
        body.left()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: unreadBytesMax }),
  )
}

/** A stream of the web as a pushed body. */
export function pushed(stream: ReadableStream<Uint8Array>): PushedBody {
  const reader = stream.getReader()
  let goOn: (() => void) | undefined

  async function pump(sink: Sink): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return sink.end()
        if (!sink.write(value)) await new Promise<void>((resolve) => (goOn = resolve))
      }
    } catch (thrown) {
      sink.cut(thrown)
    }
  }

  return {
    begin: (sink) => void pump(sink),
    drained() {
      goOn?.()
      goOn = undefined
    },
    left() {
      reader.cancel().catch(() => {}) // after a failure there is nothing left to cancel
      goOn?.()
    },
  }
}
