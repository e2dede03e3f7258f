import { DiskFull, type Disk } from '../../src/billing/leased/disk.ts'

export type MemoryDisk = Disk & {
  readonly files: Map<string, Uint8Array<ArrayBuffer>>
  /** Names of the files that were synced, in order. */
  readonly synced: string[]
  /** Runs before each sync; a test waits or throws in it. */
  onSync: () => Promise<void>
  /** How many bytes still fit, besides the reserve. */
  roomBytes: number
}

/** The journal's files in memory, on a disk that a test controls. */
export function memoryDisk(files: Iterable<readonly [string, Uint8Array]> = []): MemoryDisk {
  const stored = new Map([...files].map(([name, bytes]) => [name, new Uint8Array(bytes)]))
  let reserveBytes = 0
  const disk: MemoryDisk = {
    files: stored,
    synced: [],
    onSync: () => Promise.resolve(),
    roomBytes: Infinity,
    list: () => [...stored.keys()],
    read: (name) => new Uint8Array(stored.get(name) ?? []),
    open(name) {
      if (!stored.has(name)) stored.set(name, new Uint8Array())
      return {
        write(bytes, position) {
          const before = stored.get(name) ?? new Uint8Array()
          const grown = Math.max(0, position + bytes.length - before.length)
          if (grown > disk.roomBytes) throw new DiskFull()
          disk.roomBytes -= grown
          const after = new Uint8Array(before.length + grown)
          after.set(before)
          after.set(bytes, position)
          stored.set(name, after)
        },
        async sync() {
          disk.synced.push(name)
          await disk.onSync()
        },
        close() {},
      }
    },
    reserve() {
      if (reserveBytes === 0 && disk.roomBytes < reserveSize) return false
      if (reserveBytes === 0) [reserveBytes, disk.roomBytes] = [reserveSize, disk.roomBytes - reserveSize]
      return true
    },
    useReserve() {
      disk.roomBytes += reserveBytes
      reserveBytes = 0
    },
  }
  return disk
}

const reserveSize = 10_000
