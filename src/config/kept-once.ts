import { accessSync, closeSync, constants, fsyncSync, linkSync, lstatSync, mkdirSync, openSync } from 'node:fs'
import { readFileSync, statSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncFolder } from '../base/sync-folder.ts'
import { codeOf, isMissing } from '../base/system-errors.ts'

/** What keeping a text asks of the file system beyond writing; tests put in one that cannot link, or that tells. */
export type Keeping = {
  readonly link: (from: string, to: string) => void
  /** Once it returns, what was written survives a power cut. */
  readonly sync: (fd: number) => void
}

const onThisMachine: Keeping = { link: linkSync, sync: fsyncSync }

/**
 * Makes a text once and keeps it in a file that only its owner can read. It is written to a temporary file and linked
 * into place, so that of two simultaneous first starts one wins, and a half-written text is never read. It is synced
 * before it is used: what is made under it, such as a key's hash, is in the database for good.
 */
export function keptOnce(file: string, make: () => string, keeping: Keeping = onThisMachine): string {
  try {
    return readKept(file) ?? keep(file, make(), keeping)
  } catch (thrown) {
    throw unusable(dirname(file), thrown)
  }
}

/**
 * Whether there is a text in a kept file: after a power cut, one that was not synced may be empty or have only zeros.
 */
export function isWhole(kept: string): boolean {
  return kept !== '' && !kept.includes('\0')
}

/** Throws if nothing could be kept in a folder. A folder that does not exist yet is fine if it could be created. */
export function checkFolder(folder: string): void {
  let existing = folder
  while (isAbsent(existing) && existing !== dirname(existing)) existing = dirname(existing)
  try {
    if (!statSync(existing).isDirectory()) throw new Error(`${existing} is not a folder`)
    accessSync(existing, constants.W_OK | constants.X_OK)
  } catch (thrown) {
    throw unusable(folder, thrown)
  }
}

/** A link that leads nowhere is not absent: no folder can be created in its place. */
function isAbsent(path: string): boolean {
  try {
    lstatSync(path)
    return false
  } catch (thrown) {
    return isMissing(thrown)
  }
}

function unusable(folder: string, cause: unknown): Error {
  return new Error(`${folder} cannot be used (TURNPIKE_DATA names the folder): ${String(cause)}`, { cause })
}

function keep(file: string, text: string, keeping: Keeping): string {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const aside = `${file}.${process.pid}`
  write(aside, 'w', text, keeping)
  try {
    place(aside, file, text, keeping)
  } catch (thrown) {
    if (codeOf(thrown) !== 'EEXIST') throw thrown
  } finally {
    unlinkSync(aside)
  }
  syncFolder(dirname(file), keeping.sync)
  const kept = readKept(file)
  if (kept === undefined) throw new Error('what was written there is gone')
  return kept
}

function write(file: string, flags: 'w' | 'wx', text: string, { sync }: Keeping): void {
  const fd = openSync(file, flags, 0o600)
  try {
    writeSync(fd, text)
    sync(fd)
  } finally {
    closeSync(fd)
  }
}

// How exFAT, network shares and other file systems without links answer.
const cannotLink = new Set<unknown>(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

/**
 * Fails with EEXIST if the file exists. Without links it appears before its text does, which only a second start sees.
 */
function place(aside: string, file: string, text: string, keeping: Keeping): void {
  try {
    keeping.link(aside, file)
  } catch (thrown) {
    if (!cannotLink.has(codeOf(thrown))) throw thrown
    write(file, 'wx', text, keeping)
  }
}

export function readKept(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (thrown) {
    if (isMissing(thrown)) return undefined
    throw thrown
  }
}
