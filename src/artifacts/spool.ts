import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Later } from '../base/later.ts'
import { isDiskFull, isMissing } from '../base/system-errors.ts'
import { NoRoom, StoreUnreachable, type Result } from './store.ts'

/** A whole result on this disk that has no name yet. It ends by exactly one call of `moveTo` or `drop`. */
export type Received = {
  readonly file: string
  readonly bytes: number
  /** Moves it to its place; from then on its bytes count as kept until they are given back. */
  moveTo(file: string): Promise<void>
  drop(): Promise<void>
}

export type Spool = {
  /** Resolves once the bytes that earlier processes left are counted. */
  ready(): Promise<void>
  receive(result: Result): Promise<Received>
  /** Call it for bytes that were moved to their place and are no longer there. */
  giveBack(bytes: number): void
  /** Counts again what is on disk if a result was refused since the last count: an operator may have deleted files. */
  recount(): Promise<void>
}

export type SpoolOptions = {
  readonly folder: string
  /** The limit on all bytes here at once, half-received results included. */
  readonly bytesMax: number
  /** Counts the bytes of results that are in their place, also from earlier processes. */
  readonly countKept: () => Promise<number>
}

/** Receives results beside their final place, so that a half-written one is never found, and keeps to `bytesMax`. */
export function openSpool({ folder, bytesMax, countKept }: SpoolOptions): Spool {
  const aside = join(folder, 'incoming')
  let incoming = 0
  let kept = 0
  let isRefusing = false

  const prepared = new Later(async () => {
    // Only one process at a time uses the folder, so files here were left by one that is gone.
    await rm(aside, { recursive: true, force: true })
    await mkdir(aside, { recursive: true, mode: 0o700 })
    kept += await countKept()
  })

  function take(bytes: number): void {
    if (kept + incoming + bytes > bytesMax) {
      isRefusing = true
      throw new NoRoom(`artifacts.bytesMax of ${bytesMax} is used up`)
    }
    incoming += bytes
  }

  /** Makes the folder again if it is missing: an operator who makes room by hand may have deleted it too. */
  async function create(file: string): Promise<FileHandle> {
    try {
      return await open(file, 'wx', 0o600)
    } catch (thrown) {
      if (!isMissing(thrown)) throw thrown
      await mkdir(aside, { recursive: true, mode: 0o700 })
      return open(file, 'wx', 0o600)
    }
  }

  async function write(file: string, result: Result): Promise<number> {
    let bytes = 0
    const handle = await onDisk(create(file))
    try {
      for await (const chunk of piecesOf(result)) {
        take(chunk.length)
        bytes += chunk.length
        await onDisk(writeAll(handle, chunk))
      }
      // Without this a power cut may leave the name without the bytes.
      await onDisk(handle.datasync())
    } catch (thrown) {
      incoming -= bytes
      // If the file cannot be deleted now, the next start does it.
      await rm(file, { force: true }).catch(() => {})
      throw thrown
    } finally {
      await handle.close()
    }
    return bytes
  }

  /** Cancels the stream of a result that is not taken, even unread, or its call to the vendor would stay open. */
  async function takeIn(file: string, result: Result): Promise<number> {
    try {
      await onDisk(prepared.get())
      return await write(file, result)
    } catch (thrown) {
      if (result instanceof ReadableStream) void result.cancel().catch(() => {})
      throw thrown
    }
  }

  return {
    ready: () => prepared.get(),
    async receive(result) {
      const file = join(aside, randomUUID())
      const bytes = await takeIn(file, result)
      return {
        file,
        bytes,
        async moveTo(place) {
          await onDisk(mkdir(dirname(place), { recursive: true, mode: 0o700 }))
          await onDisk(rename(file, place))
          incoming -= bytes
          kept += bytes
        },
        async drop() {
          incoming -= bytes
          await rm(file, { force: true })
        },
      }
    },
    giveBack(bytes) {
      kept -= bytes
    },
    async recount() {
      if (!isRefusing) return
      isRefusing = false
      const before = kept
      const counted = await countKept()
      // A result that came during the count may be counted twice, until the next count.
      kept = counted + kept - before
    },
  }
}

/** A failing disk is the gateway's own fault, told as `overloaded`. */
async function onDisk<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (thrown) {
    throw isDiskFull(thrown) ? new NoRoom('the disk is full') : new StoreUnreachable(thrown)
  }
}

async function* piecesOf(result: Result): AsyncGenerator<Uint8Array> {
  if (result instanceof Uint8Array) yield result
  else yield* result
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += (await handle.write(bytes, at)).bytesWritten
}
