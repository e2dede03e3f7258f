import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { isWhole, keptOnce } from './kept-once.ts'

/** The node's name, which stays the same across restarts: its leases and its journal are recorded under it. */
export function nodeIdentity(dataFolder: string): string {
  const file = join(dataFolder, 'node')
  const kept = keptOnce(file, () => `node_${randomBytes(16).toString('hex')}`)
  if (!isWhole(kept)) {
    throw new Error(
      `${file} holds no name: restore it from a copy, or write this node's id in the table "node" into it`,
    )
  }
  return kept
}
