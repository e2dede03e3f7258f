import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const secretBytes = 32

/**
 * The secret everything else derives from: given, or made once and kept in a file that only its owner can read.
 * Written aside and linked into place, so that of two first starts one decides and no half-written secret is ever read.
 */
export function installationSecret(given: string | undefined, dataFolder: string): Uint8Array {
  if (given !== undefined) return Buffer.from(given)
  const file = join(dataFolder, 'secret')
  const kept = readSecret(file)
  if (kept !== undefined) return kept
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
  const aside = `${file}.${process.pid}`
  writeFileSync(aside, randomBytes(secretBytes).toString('hex'), { mode: 0o600 })
  try {
    linkSync(aside, file)
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST')) throw thrown
  } finally {
    unlinkSync(aside)
  }
  const made = readSecret(file)
  if (made === undefined) throw new Error(`${file} cannot be read`)
  return made
}

function readSecret(file: string): Uint8Array | undefined {
  try {
    const text = readFileSync(file, 'utf8').trim()
    if (text.length < secretBytes) throw new Error(`${file} holds no secret of at least ${secretBytes} bytes`)
    return Buffer.from(text)
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return undefined
    throw thrown
  }
}
