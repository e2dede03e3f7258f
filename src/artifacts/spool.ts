import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDiskFull } from '../base/system-errors.ts'
import { NoRoom, type Result } from './store.ts'

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
  let used = 0
  let preparing: Promise<void> | undefined

  async function prepare(): Promise<void> {
    // The folder has one process: what lies here was left by one that is gone.
    await rm(aside, { recursive: true, force: true })
    await mkdir(aside, { recursive: true, mode: 0o700 })
    used += await countKept()
  }

  function take(bytes: number): void {
    if (used + bytes > bytesMax) throw new NoRoom(`artifacts.bytesMax of ${bytesMax} is used up`)
    used += bytes
  }

  async function write(file: string, result: Result): Promise<number> {
    let bytes = 0
    const handle = await open(file, 'wx', 0o600)
    try {
      for await (const chunk of piecesOf(result)) {
        take(chunk.length)
        bytes += chunk.length
        await writeAll(handle, chunk)
      }
      // Else a power cut may leave the name without the bytes.
      await handle.datasync()
    } catch (thrown) {
      used -= bytes
      throw thrown
    } finally {
      await handle.close()
    }
    return bytes
  }

  async function beReady(): Promise<void> {
    preparing ??= prepare()
    try {
      await preparing
    } catch (thrown) {
      preparing = undefined
      throw thrown
    }
  }

  return {
    ready: beReady,
    async receive(result) {
      const file = join(aside, randomUUID())
      try {
        await beReady()
        const bytes = await write(file, result)
        return {
          file,
          bytes,
          async moveTo(place) {
            await mkdir(dirname(place), { recursive: true, mode: 0o700 })
            await rename(file, place)
          },
          async drop() {
            used -= bytes
            await rm(file, { force: true })
          },
        }
      } catch (thrown) {
        await rm(file, { force: true })
        throw isDiskFull(thrown) ? new NoRoom('the disk is full') : thrown
      }
    },
    giveBack(bytes) {
      used -= bytes
    },
  }
}

async function* piecesOf(result: Result): AsyncGenerator<Uint8Array> {
  if (result instanceof Uint8Array) yield result
  else yield* result
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += (await handle.write(bytes, at)).bytesWritten
}
