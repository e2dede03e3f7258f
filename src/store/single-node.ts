import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../base/errors.ts'
import { lockFile } from './sqlite.ts'

export type SingleNode = { release(): void }

/**
 * On SQLite one gateway owns the folder: at its start it voids every open hold, and a second one would void those of
 * the first. The lock is the kernel's and ends with the process, also by kill -9, so there is no stale lock to remove.
 * Never open the lock file by other means in this process: closing any descriptor of it would drop the lock.
 */
export function claimSingleNode(folder: string): SingleNode {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const lock = lockIn(folder)
  if (lock === undefined) throw new FolderInUse(folder)
  return lock
}

function lockIn(folder: string): SingleNode | undefined {
  const file = join(folder, 'gateway.lock')
  try {
    return lockFile(file)
  } catch (thrown) {
    throw new Error(`${file} cannot be locked: ${messageOf(thrown)}`, { cause: thrown })
  }
}

export class FolderInUse extends Error {
  constructor(folder: string) {
    super(
      `Another gateway is running on ${folder}. Stop it, or give this one a folder of its own with TURNPIKE_DATA: ` +
        'several on one PostgreSQL (DATABASE_URL) have one each.',
    )
    this.name = 'FolderInUse'
  }
}
