import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'

/**
 * Where the program's own files are. It runs from its sources, or from the bundle that `scripts/bundle.ts` makes of
 * them in `dist/` (docs/decisions/0018). What is only read stays in `src/`.
 */
const isBundled = import.meta.url.endsWith('.js')
const sources = new URL(isBundled ? '../src/' : '../', import.meta.url)
export const bundleFolder = new URL('../dist/', sources)

/** A file of the sources that is read and not run. The path begins below `src/`. */
export function sourceFile(path: string): URL {
  return new URL(path, sources)
}

/** The program of a thread, whose name ends in `-worker.ts`. The path begins below `src/`. */
export function threadProgram(path: string): string {
  return isBundled ? new URL(`${basename(path, '.ts')}.js`, import.meta.url).href : sourceFile(path).href
}

/** The program of this process, which loads in half the time if it was bundled of exactly these sources. */
export function mainProgram(): string {
  const bundled = new URL('main.js', bundleFolder)
  return isBundleCurrent() ? bundled.href : sourceFile('main.ts').href
}

function isBundleCurrent(): boolean {
  try {
    return readFileSync(new URL(fingerprintFile, bundleFolder), 'utf8') === fingerprintOfSources()
  } catch {
    return false
  }
}

/** In the bundle, of what it was made. */
export const fingerprintFile = 'sources.txt'

/**
 * By what is in the files, some 15 ms. Their times would not do: an unpacked archive has files that are older than the
 * bundle of the version before, and an image's files may have lost a part of theirs.
 */
export function fingerprintOfSources(): string {
  const folder = fileURLToPath(sources)
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  let sum = crc32(readFileSync(new URL('../package.json', sources)))
  for (const path of paths.filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts')).toSorted()) {
    sum = crc32(readFileSync(folder + path), crc32(path, sum))
  }
  return `${sum.toString(16)}\n`
}
