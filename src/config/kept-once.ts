import { accessSync, constants, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf, isMissing } from '../base/system-errors.ts'

/**
 * Makes a text once and keeps it in a file that only its owner can read. It is written to a temporary file and linked
 * into place, so that of two simultaneous first starts one wins, and a half-written text is never read.
 */
export function keptOnce(file: string, make: () => string): string {
  try {
    return readKept(file) ?? keep(file, make())
  } catch (thrown) {
    throw unusable(dirname(file), thrown)
  }
}

/** Throws if nothing could be kept in a folder. A folder that does not exist yet is fine if it could be created. */
export function checkFolder(folder: string): void {
  for (let existing = folder; ; existing = dirname(existing)) {
    try {
      return accessSync(existing, constants.W_OK | constants.X_OK)
    } catch (thrown) {
      if (!isMissing(thrown) || existing === dirname(existing)) throw unusable(folder, thrown)
    }
  }
}

function unusable(folder: string, cause: unknown): Error {
  return new Error(`${folder} cannot be used (TURNPIKE_DATA names the folder): ${String(cause)}`, { cause })
}

function keep(file: string, text: string): string {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const aside = `${file}.${process.pid}`
  writeFileSync(aside, text, { mode: 0o600 })
  try {
    linkSync(aside, file)
  } catch (thrown) {
    if (codeOf(thrown) !== 'EEXIST') throw thrown
  } finally {
    unlinkSync(aside)
  }
  const kept = readKept(file)
  if (kept === undefined) throw new Error('what was written there is gone')
  return kept
}

export function readKept(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (thrown) {
    if (isMissing(thrown)) return undefined
    throw thrown
  }
}
