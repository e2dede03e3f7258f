import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { keptOnce } from './kept-once.ts'

/** The node's name, which stays the same across restarts: its leases and its journal are recorded under it. */
export function nodeIdentity(dataFolder: string): string {
  return keptOnce(join(dataFolder, 'node'), () => `node_${randomBytes(16).toString('hex')}`)
}
