/**
 * Reads a body piece by piece, to its end or until the call is cancelled: a stream whose client has left yields nothing
 * more, not even its end, so its reader has to leave too. Throws what the body broke off with.
 */
export async function readPieces(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  take: (piece: Uint8Array) => void,
): Promise<void> {
  const reader = body.getReader()
  const leave = () => {
    reader.cancel().catch(() => {})
  }
  if (signal.aborted) leave()
  signal.addEventListener('abort', leave, { once: true })
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) take(read.value)
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
