import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { isMissing } from './system-errors.ts'

/**
 * Where the program's own files are. It runs from its sources, or from a bundle of them that `scripts/bundle.ts` makes
 * (docs/decisions/0018), in a folder of `dist/` that is named for what it was made of. Files that are only read stay in
 * the sources.
 */
const isBundled = import.meta.url.endsWith('.js')
const sources = new URL(isBundled ? '../../src/' : '../', import.meta.url)
const root = new URL('../', sources)
export const bundles = new URL('dist/', root)

/** A file of the sources that is read and not run. The path begins below `src/`. */
export function sourceFile(path: string): URL {
  return new URL(path, sources)
}

/** The program of a thread, whose name ends in `-worker.ts`. The path begins below `src/`. */
export function threadProgram(path: string): string {
  return isBundled ? new URL(`${basename(path, '.ts')}.js`, import.meta.url).href : sourceFile(path).href
}

/**
 * What a bundle is made of, as a short text: the sources, but for tests, and the packages that are installed. It is a
 * checksum of what is in the files, and takes some 15 ms. Their times would not do: an unpacked archive has files that
 * are older than the bundle of the version before, and an image's files may have lost a part of theirs.
 */
export function fingerprint(): string {
  // npm writes down in this file what is installed. An installation as a package of another has it elsewhere.
  let sum = crc32(readIfThere(new URL('node_modules/.package-lock.json', root)))
  sum = crc32(readFileSync(new URL('package.json', root)), sum)
  const folder = fileURLToPath(sources)
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  for (const path of paths.filter(isProgram).toSorted()) {
    sum = crc32(readFileSync(folder + path), crc32(path, sum))
  }
  return sum.toString(16).padStart(8, '0')
}

/** Editors leave files beside the sources whose names begin with a dot. */
function isProgram(path: string): boolean {
  return path.endsWith('.ts') && !path.endsWith('.test.ts') && !basename(path).startsWith('.')
}

function readIfThere(file: URL): Uint8Array {
  try {
    return readFileSync(file)
  } catch (thrown) {
    if (!isMissing(thrown)) throw thrown
    return new Uint8Array()
  }
}
