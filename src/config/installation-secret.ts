import { randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { checkFolder, isWhole, keptOnce, readKept } from './kept-once.ts'

const secretBytes = 32

/** Where a secret is kept that the environment does not give. */
export function secretFile(dataFolder: string): string {
  return join(dataFolder, 'secret')
}

/** The secret from which all others derive: given in the environment, or made once and kept beside the database. */
export function installationSecret(given: string | undefined, dataFolder: string): Uint8Array {
  if (given !== undefined) return Buffer.from(given)
  const file = secretFile(dataFolder)
  const kept = keptOnce(file, () => randomBytes(secretBytes).toString('hex'))
  if (kept.length < secretBytes || !isWhole(kept)) {
    throw new Error(
      `${file} holds no secret of at least ${secretBytes} bytes: restore it from a copy, ` +
        'or delete it to have a new one made, under which no key of before works',
    )
  }
  return Buffer.from(kept)
}

/** Throws if a start could not get its secret. Creates nothing. */
export function checkSecret(given: string | undefined, dataFolder: string): void {
  checkFolder(dataFolder)
  if (given === undefined && existsSync(secretFile(dataFolder))) installationSecret(given, dataFolder)
}

/** The file of a secret that an earlier start made, and that a different secret in the environment now replaces. */
export function replacedSecretFile(given: string | undefined, dataFolder: string): string | undefined {
  if (given === undefined) return undefined
  const file = secretFile(dataFolder)
  try {
    const kept = readKept(file)
    return kept === undefined || kept === given ? undefined : file
  } catch {
    return undefined // The file is not needed, so failing to read it must not stop the start.
  }
}

const othersMayReadOrWrite = 0o006

/** The file of the secret in use, if users other than its owner and group may read or change it. */
export function exposedSecretFile(given: string | undefined, dataFolder: string): string | undefined {
  if (replacedSecretFile(given, dataFolder) !== undefined) return undefined
  const file = secretFile(dataFolder)
  const { mode } = statSync(file, { throwIfNoEntry: false }) ?? { mode: 0 }
  return (mode & othersMayReadOrWrite) === 0 ? undefined : file
}
