import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { keptOnce } from './kept-once.ts'

/** Who this node is, across restarts: its leases and its journal go by this name. */
export function nodeIdentity(dataFolder: string): string {
  return keptOnce(join(dataFolder, 'node'), () => `node_${randomBytes(16).toString('hex')}`)
}
