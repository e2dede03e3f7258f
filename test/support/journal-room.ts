import { existsSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What a journal sets aside. */
const reserveBytes = 64 * 1024 * 1024

/**
 * A start on a new folder writes so much to the disk, and waits until it is there, so that a full disk does not stop what is
 * under way. For tests that are not about that, it stands there already, as a hole in which nothing was ever written.
 */
export function digReserve(dataFolder: string): void {
  const folder = join(dataFolder, 'journal')
  if (existsSync(folder)) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, 'reserve')
  writeFileSync(file, '', { mode: 0o600 })
  truncateSync(file, reserveBytes)
}
