import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fdatasync, fstatSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { readdirSync, readFileSync, statfsSync, unlinkSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../base/sync-folder.ts'
import { isDiskFull } from '../../base/system-errors.ts'

/** The journal's files as a seam: tests put in a disk that crashes, fills up and forgets what was not synced. */
export type Disk = {
  /** Names of the segments that exist. */
  list(): string[]
  read(name: string): Uint8Array
  /** Opens for writing at any position; an existing file keeps its bytes until they are written over. */
  open(name: string): SegmentFile
  /** Sets room aside for when the disk is full. False if there is not enough. */
  reserve(): boolean
  /** Gives the reserve up, so that settlements still fit. */
  useReserve(): void
}

export type SegmentFile = {
  /** Throws `DiskFull` when there is no room. Once it returns, the bytes survive the end of this process. */
  write(bytes: Uint8Array, position: number): void
  /** Once it resolves, the bytes survive a power cut. A rejection is final: the kernel may have dropped them. */
  sync(): Promise<void>
  close(): void
}

export class DiskFull extends Error {
  constructor() {
    super('the disk is full')
    this.name = 'DiskFull'
  }
}

const reserveBytes = 64 * 1024 * 1024
const reserveName = 'reserve'
const segmentPattern = /^segment-[ab]$/

export function openDisk(folder: string): Disk {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return {
    list: () => readdirSync(folder).filter((name) => segmentPattern.test(name)),
    read: (name) => readFileSync(join(folder, name)),
    open: (name) => openSegment(join(folder, name)),
    reserve: () => setAside(join(folder, reserveName)),
    useReserve() {
      if (existsSync(join(folder, reserveName))) unlinkSync(join(folder, reserveName))
    },
  }
}

function openSegment(path: string): SegmentFile {
  // Without O_TRUNC: the file may be recycled, and bytes of an older generation behind the newer one's end are
  // harmless.
  const isNew = !existsSync(path)
  const fd = openSync(path, isNew ? 'wx+' : 'r+', 0o600)
  if (isNew) syncFolder(dirname(path))
  return {
    write(bytes, position) {
      let written = 0
      while (written < bytes.length) {
        try {
          written += writeSync(fd, bytes, written, bytes.length - written, position + written)
        } catch (thrown) {
          throw isDiskFull(thrown) ? new DiskFull() : thrown
        }
      }
    },
    sync: () =>
      new Promise((resolve, reject) => fdatasync(fd, (error) => (error === null ? resolve() : reject(error)))),
    close: () => closeSync(fd),
  }
}

/** Writes random bytes: a sparse file reserves nothing, nor do zeros on a file system that compresses. */
function setAside(path: string): boolean {
  const fd = openSync(path, 'a', 0o600)
  try {
    const { size } = fstatSync(fd)
    if (size < reserveBytes) {
      const filler = randomBytes(1024 * 1024)
      // The free space is checked first: to fill the disk and delete the file again, every second, would starve all
      // other programs that use it.
      const { bavail, bsize } = statfsSync(path)
      if (bavail * bsize < reserveBytes - size) return drop(path)
      for (let written = size; written < reserveBytes; written += filler.length) writeSync(fd, filler)
      fsyncSync(fd)
    }
    return true
  } catch (thrown) {
    if (!isDiskFull(thrown)) throw thrown
    return drop(path)
  } finally {
    closeSync(fd)
  }
}

function drop(path: string): false {
  unlinkSync(path)
  return false
}
