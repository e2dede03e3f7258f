import { existsSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The size of a journal's reserve. */
const reserveBytes = 64 * 1024 * 1024

/**
 * A start in a new folder writes this much to the disk and waits for it, so that a full disk does not stop requests
 * under way. For tests that are not about that, this creates the reserve beforehand, as a sparse file.
 */
export function createSparseReserve(dataFolder: string): void {
  const folder = join(dataFolder, 'journal')
  if (existsSync(folder)) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, 'reserve')
  writeFileSync(file, '', { mode: 0o600 })
  truncateSync(file, reserveBytes)
}
