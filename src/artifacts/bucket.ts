import { S3Client } from 'bun'
import { openAsBlob } from 'node:fs'
import type { Timers } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { codeOf } from '../base/system-errors.ts'
import { unlessAborted } from '../base/within.ts'
import { hourPattern } from './names.ts'
import { openSpool } from './spool.ts'
import { StoreUnreachable, type ArtifactStore } from './store.ts'

export type BucketSettings = {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** Apart from whatever else is in the bucket. */
const prefix = 'artifacts/'
// Our hours begin in this century: a sweep looks at nothing of others that stands before.
const earliest = `${prefix}20`

// What is read at once. A piece of a large result waits in memory for its reader, and the next is asked for after it.
const pieceBytes = 8 * 1024 * 1024
const requestMs = 30_000
// An upload has the time besides that its bytes take on a slow line: nobody waits for a picture as long as a film may take.
const uploadBytesPerMs = (128 * 1024) / 1000
const uploadMsMax = 10 * 60_000
const retries = 2

/**
 * Results in a bucket that every node reads: the seam of Bun's S3 client, which signs, retries, and sends what is large in
 * parts. It would take a session token from the environment, whatever credentials it is given, so `bin/turnpike` takes
 * those variables away.
 */
export function openBucketStore(
  settings: BucketSettings,
  waiting: { folder: string; bytesMax: number; timers: Timers },
): ArtifactStore {
  const client = new S3Client({ ...settings, retry: retries })
  const { timers } = waiting
  // What comes as a stream is complete on this disk before the bucket sees a byte: no half of a result is ever kept.
  const spool = openSpool({ ...waiting, countKept: () => Promise.resolve(0) })

  /** The client cannot be called off, so it is no longer waited for. */
  async function asked<T>(ms: number, work: Promise<T>, signal?: AbortSignal): Promise<T> {
    const late = new AbortController()
    const callOff = timers.after(ms, () => late.abort(new Error('the bucket does not answer')))
    try {
      return await unlessAborted(AbortSignal.any(signal === undefined ? [late.signal] : [late.signal, signal]), work)
    } catch (thrown) {
      // Who left is not the bucket's fault.
      throw signal?.aborted === true ? gone(signal) : new StoreUnreachable(explained(thrown))
    } finally {
      callOff()
    }
  }

  async function sizeOf(key: string): Promise<number | undefined> {
    const found = client.stat(key).catch((thrown: unknown) => {
      if (codeOf(thrown) === 'NoSuchKey') return undefined
      throw thrown
    })
    return (await asked(requestMs, found))?.size
  }

  async function readPiece(key: string, from: number, to: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = await asked(requestMs, client.file(key).slice(from, to).bytes())
    if (bytes.length !== to - from) throw new StoreUnreachable('the bucket gave another part than was asked for')
    return bytes
  }

  return {
    async put(name, result, mediaType, signal) {
      const put = (body: Uint8Array | Blob, bytes: number) =>
        asked(uploadMs(bytes), client.write(prefix + name, body, { type: mediaType }), signal)
      if (result instanceof Uint8Array) {
        await put(result, result.length)
        return result.length
      }
      const received = await spool.receive(result)
      try {
        await put(await openAsBlob(received.file), received.bytes)
        return received.bytes
      } finally {
        await received.drop()
      }
    },

    async find(name) {
      const key = prefix + name
      const bytes = await sizeOf(key)
      if (bytes === undefined) return undefined
      return {
        bytes,
        read: async (from, to) =>
          to - from <= pieceBytes ? readPiece(key, from, to) : inPieces(from, to, (a, b) => readPiece(key, a, b)),
      }
    },

    async sweep(beforeHour, countMax, signal) {
      let left = countMax
      let after = earliest
      for (;;) {
        // In the order of their names, which is that of their hours.
        const page = await asked(requestMs, client.list({ prefix, startAfter: after }), signal)
        for (const { key } of page.contents ?? []) {
          if (key >= prefix + beforeHour) return 'done'
          if (!isOurs(key)) continue
          if (left-- === 0) return 'more'
          await asked(requestMs, client.delete(key), signal)
        }
        const last = page.contents?.at(-1)?.key ?? after
        // A server that does not know where to begin gives the same page again.
        if (page.isTruncated !== true || last <= after) return 'done'
        after = last
      }
    },
  }
}

/** The bucket may have others' things under the same prefix, and the mark by which some tools show it as a folder. */
function isOurs(key: string): boolean {
  const [hour = '', id] = key.slice(prefix.length).split('/')
  return hourPattern.test(hour) && id !== undefined
}

function uploadMs(bytes: number): number {
  return Math.min(requestMs + Math.ceil(bytes / uploadBytesPerMs), uploadMsMax)
}

function inPieces(
  from: number,
  to: number,
  read: (from: number, to: number) => Promise<Uint8Array>,
): ReadableStream<Uint8Array> {
  let at = from
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const end = Math.min(at + pieceBytes, to)
        try {
          controller.enqueue(await read(at, end))
          at = end
          if (at === to) controller.close()
        } catch {
          controller.error() // without a reason, which Bun would print to the console
        }
      },
    },
    { highWaterMark: 0 },
  )
}

/** Why nobody waits any longer: a client hung up, where whoever aborted does not say otherwise. */
function gone({ reason }: { readonly reason: unknown }): GatewayError {
  return reason instanceof GatewayError
    ? reason
    : new GatewayError('client-gone', 'The client left before the result was kept.')
}

/** Where no server answered, the client's words say nothing, and its code does: a name, a port, a certificate. */
function explained(thrown: unknown): unknown {
  const code = codeOf(thrown)
  return thrown instanceof Error && typeof code === 'string' ? new Error(`${thrown.message} (${code})`) : thrown
}
