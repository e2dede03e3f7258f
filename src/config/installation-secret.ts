import { randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { checkFolder, keptOnce, readKept } from './kept-once.ts'

const secretBytes = 32

/** The secret everything else derives from: given, or made once and kept beside the database. */
export function installationSecret(given: string | undefined, dataFolder: string): Uint8Array {
  if (given !== undefined) return Buffer.from(given)
  const file = join(dataFolder, 'secret')
  const kept = keptOnce(file, () => randomBytes(secretBytes).toString('hex'))
  if (kept.length < secretBytes) throw new Error(`${file} holds no secret of at least ${secretBytes} bytes`)
  return Buffer.from(kept)
}

/** Throws where a start would not get its secret. Makes nothing. */
export function checkSecret(given: string | undefined, dataFolder: string): void {
  checkFolder(dataFolder)
  if (given === undefined && existsSync(join(dataFolder, 'secret'))) installationSecret(given, dataFolder)
}

/** The file of a secret that starts before this one had made, and that the given one has taken the place of. */
export function forgottenSecret(given: string | undefined, dataFolder: string): string | undefined {
  if (given === undefined) return undefined
  const file = join(dataFolder, 'secret')
  try {
    const kept = readKept(file)
    return kept === undefined || kept === given ? undefined : file
  } catch {
    return undefined // It is not needed, so one that cannot be read stops nobody.
  }
}

const othersMayReadOrWrite = 0o006

/** The file of the secret that is used, where others than its owner and group may read or change it. */
export function openSecret(given: string | undefined, dataFolder: string): string | undefined {
  if (given !== undefined) return undefined
  const file = join(dataFolder, 'secret')
  const { mode } = statSync(file, { throwIfNoEntry: false }) ?? { mode: 0 }
  return (mode & othersMayReadOrWrite) === 0 ? undefined : file
}
