import { linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * A text made once and kept in a file that only its owner can read. Written aside and linked into place, so that of two
 * first starts one decides, and no half-written text is ever read.
 */
export function keptOnce(file: string, make: () => string): string {
  const kept = read(file)
  if (kept !== undefined) return kept
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const aside = `${file}.${process.pid}`
  writeFileSync(aside, make(), { mode: 0o600 })
  try {
    linkSync(aside, file)
  } catch (thrown) {
    if (!hasCode(thrown, 'EEXIST')) throw thrown
  } finally {
    unlinkSync(aside)
  }
  const made = read(file)
  if (made === undefined) throw new Error(`${file} cannot be read`)
  return made
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (thrown) {
    if (hasCode(thrown, 'ENOENT')) return undefined
    throw thrown
  }
}

function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code
}
