import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Later } from '../base/later.ts'
import { isDiskFull, isMissing } from '../base/system-errors.ts'
import { NoRoom, StoreUnreachable, type Result } from './store.ts'

/** A result on this disk, whole and under no name yet. Exactly one of these ends it. */
export type Received = {
  readonly file: string
  readonly bytes: number
  /** Gives it its place; from then on its bytes count until they are given back. */
  moveTo(file: string): Promise<void>
  drop(): Promise<void>
}

export type Spool = {
  /** Once what earlier processes left is counted. */
  ready(): Promise<void>
  receive(result: Result): Promise<Received>
  /** Bytes that were moved to a place and are no longer there. */
  giveBack(bytes: number): void
  /** Looks what is really there, where something was refused since the last time: somebody may have made room by hand. */
  recount(): Promise<void>
}

export type SpoolOptions = {
  readonly folder: string
  /** All that is here at once, half-received results included. */
  readonly bytesMax: number
  /** What earlier processes left in its place. */
  readonly countKept: () => Promise<number>
}

/** Takes results in beside their place, so that a half-written one is never found, and knows how much room is left. */
export function openSpool({ folder, bytesMax, countKept }: SpoolOptions): Spool {
  const aside = join(folder, 'incoming')
  let incoming = 0
  let kept = 0
  let isRefusing = false

  const prepared = new Later(async () => {
    // The folder has one process: what lies here was left by one that is gone.
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

  /** Who makes room by hand may delete all of it, this folder too. */
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
      // Else a power cut may leave the name without the bytes.
      await onDisk(handle.datasync())
    } catch (thrown) {
      incoming -= bytes
      // Where that cannot be, the next start does it.
      await rm(file, { force: true }).catch(() => {})
      throw thrown
    } finally {
      await handle.close()
    }
    return bytes
  }

  /** Whoever sends what is not taken is told so, also where it is nothing at all. */
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
      // What came meanwhile may be counted twice, until the next time.
      kept = counted + kept - before
    },
  }
}

/** A disk that cannot be used is our trouble. */
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
