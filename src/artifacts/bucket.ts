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

/** Keeps our objects apart from others in the bucket. */
const prefix = 'artifacts/'
// The hours in our names begin with "20", so a sweep starts there and skips other objects that sort before.
const earliest = `${prefix}20`

// How much is read at once. A piece of a large result waits in memory for its reader before the next one is requested.
const pieceBytes = 8 * 1024 * 1024
const requestMs = 30_000
// An upload also gets the time that its bytes take on a slow line, so that an image fails sooner than a large video.
const uploadBytesPerMs = (128 * 1024) / 1000
const uploadMsMax = 10 * 60_000
const retries = 2

/**
 * Results in a bucket that every node reads: the seam around Bun's S3 client, which signs, retries, and sends large
 * results in parts. That client takes a session token from the environment even if it is given other credentials, so
 * `bin/turnpike` removes those variables.
 */
export function openBucketStore(
  settings: BucketSettings,
  waiting: { folder: string; bytesMax: number; timers: Timers },
): ArtifactStore {
  const client = new S3Client({ ...settings, retry: retries })
  const { timers } = waiting
  // A streamed result is received on this disk in full before the bucket gets a byte, so that no half result is ever
  // kept.
  const spool = openSpool({ ...waiting, countKept: () => Promise.resolve(0) })

  /** Bun's S3 client cannot be aborted, so after `ms` or an abort its call is left to itself. */
  async function asked<T>(ms: number, work: Promise<T>, signal?: AbortSignal): Promise<T> {
    const late = new AbortController()
    const callOff = timers.after(ms, () => late.abort(new Error('the bucket does not answer')))
    try {
      return await unlessAborted(AbortSignal.any(signal === undefined ? [late.signal] : [late.signal, signal]), work)
    } catch (thrown) {
      // An abort by the caller is not the bucket's fault.
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
        // Objects are listed in the order of their names, which is that of their hours.
        const page = await asked(requestMs, client.list({ prefix, startAfter: after }), signal)
        for (const { key } of page.contents ?? []) {
          if (key >= prefix + beforeHour) return 'done'
          if (!isOurs(key)) continue
          if (left-- === 0) return 'more'
          await asked(requestMs, client.delete(key), signal)
        }
        const last = page.contents?.at(-1)?.key ?? after
        // A server that does not know `startAfter` gives the same page again.
        if (page.isTruncated !== true || last <= after) return 'done'
        after = last
      }
    },
  }
}

/** The bucket may have foreign objects under this prefix, and the marker by which some tools show it as a folder. */
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

/** The reason of the abort; an abort that gives none means that the client hung up. */
function gone({ reason }: { readonly reason: unknown }): GatewayError {
  return reason instanceof GatewayError
    ? reason
    : new GatewayError('client-gone', 'The client left before the result was kept.')
}

/** Where no server answered, the S3 client's message says nothing, but its code does: a name, a port, a certificate. */
function explained(thrown: unknown): unknown {
  const code = codeOf(thrown)
  return thrown instanceof Error && typeof code === 'string' ? new Error(`${thrown.message} (${code})`) : thrown
}
