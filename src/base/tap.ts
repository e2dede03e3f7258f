/** What feeds a tapped stream: the next bytes, or undefined when there are no more. */
export type Source = {
  pull(): Promise<Uint8Array | undefined>
  /** The reader left before the end. Called at most once, and never after `pull` gave undefined or threw. */
  gone(): void
}

/**
 * A body whose end is told exactly once, whichever way it comes: read to its end, failed, or left by its reader, even
 * before the first pull (where the `finally` of an async generator would never run). Pull-driven, so that a slow reader
 * slows the source and memory stays flat.
 */
export function tap(source: Source, signal: AbortSignal): ReadableStream<Uint8Array> {
  let ended = false
  const leave = () => {
    if (ended) return
    ended = true
    source.gone()
  }
  const end = () => {
    ended = true
    signal.removeEventListener('abort', leave)
  }
  if (signal.aborted) leave()
  else signal.addEventListener('abort', leave, { once: true })

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (ended) return controller.close()
        try {
          const bytes = await source.pull()
          if (ended) return
          if (bytes !== undefined) return controller.enqueue(bytes)
          end()
          controller.close()
        } catch {
          end()
          controller.error() // without a reason, which Bun would print to the console
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  )
}
