import { openAsBlob } from 'node:fs'
import { readdir, rmdir, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing } from '../base/system-errors.ts'
import { hourPattern } from './names.ts'
import { openSpool } from './spool.ts'
import type { ArtifactStore } from './store.ts'

/** Results in a folder of this machine, with one subfolder for every hour in which some expire. */
export function openDiskStore({ folder, bytesMax }: { folder: string; bytesMax: number }): ArtifactStore {
  const spool = openSpool({ folder, bytesMax, countKept })

  async function hours(): Promise<string[]> {
    return (await entries(folder)).filter((name) => hourPattern.test(name)).toSorted()
  }

  async function countKept(): Promise<number> {
    let bytes = 0
    for (const hour of await hours()) {
      for (const name of await entries(join(folder, hour))) bytes += (await sizeOf(join(folder, hour, name))) ?? 0
    }
    return bytes
  }

  return {
    async put(name, result) {
      const received = await spool.receive(result)
      try {
        await received.moveTo(join(folder, name))
      } catch (thrown) {
        await received.drop()
        throw thrown
      }
      return received.bytes
    },

    async find(name) {
      const file = join(folder, name)
      const bytes = await sizeOf(file)
      if (bytes === undefined) return undefined
      // Always a slice, even of the whole: given a whole file, the runtime would apply the Range header by its own
      // rules.
      return { bytes, read: async (from, to) => (await openAsBlob(file)).slice(from, to) }
    },

    async sweep(beforeHour, countMax) {
      let left = countMax
      const expired = (await hours()).filter((hour) => hour < beforeHour)
      if (expired.length > 0) await spool.ready()
      for (const hour of expired) {
        for (const name of await entries(join(folder, hour))) {
          if (left-- === 0) return 'more'
          const file = join(folder, hour, name)
          const bytes = await sizeOf(file)
          await unlink(file)
          spool.giveBack(bytes ?? 0)
        }
        await rmdir(join(folder, hour))
      }
      await spool.recount()
      return 'done'
    },
  }
}

async function entries(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (thrown) {
    if (isMissing(thrown)) return []
    throw thrown
  }
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size
  } catch (thrown) {
    if (isMissing(thrown)) return undefined
    throw thrown
  }
}
