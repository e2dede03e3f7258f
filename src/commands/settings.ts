import { existsSync, readFileSync, statSync } from 'node:fs'
import { readUnfilled, type ConfigFile, type UnfilledFile } from '../config/file.ts'

export const defaultFile = 'turnpike.yaml'

// A catalogue of thousands of models has some hundred kilobytes. Finding out that a hundred megabytes are not valid
// would take minutes, in which a running node would serve nobody.
const bytesMax = 4 * 1024 * 1024

/**
 * The file that `--config` names, or `turnpike.yaml` where there is one, or the defaults. A start may be given a pipe;
 * a reload may not read it again, because it would find nothing or wait for somebody to write.
 */
export function loadSettings(
  path: string | undefined,
  when: 'start' | 'reload' = 'start',
): { file: ConfigFile; path: string | undefined } {
  const { file, path: found, unset } = loadUnfilled(path, when)
  if (unset !== undefined) throw unset
  return { file, path: found }
}

/** The same of a file that may lack variables: for `check`, which goes on to look for other mistakes. */
export function loadUnfilled(
  path: string | undefined,
  when: 'start' | 'reload' = 'start',
): UnfilledFile & { path: string | undefined } {
  const found = path ?? (existsSync(defaultFile) ? defaultFile : undefined)
  if (found === undefined) return { ...readUnfilled('(defaults)', '', process.env), path: undefined }
  if (!existsSync(found)) throw new Error(`there is no file ${found}`)
  const stat = statSync(found)
  if (stat.isDirectory()) throw new Error(`${found} is a folder, not a settings file`)
  if (when === 'reload' && !stat.isFile()) {
    throw new Error(`${found} is not a regular file, which is needed to reload it: restart with the new settings`)
  }
  if (stat.size > bytesMax) throw new Error(`${found} is larger than ${bytesMax} bytes`)
  const text = readText(found)
  // `make-settings > turnpike.yaml` empties the file before it writes. With the defaults, every model would be sold
  // meanwhile, hidden ones too, and without a markup.
  if (when === 'reload' && text.trim() === '') throw new Error(`${found} is empty: it may still be being written`)
  return { ...readUnfilled(found, text, process.env), path: found }
}

/** Some editors save UTF-16, or the alphabet of one country, in which a key or a name would become another one. */
function readText(path: string): string {
  const bytes = readFileSync(path)
  const text = decode(bytes)
  // UTF-16 without its mark is UTF-8 with zeros, which no YAML has.
  if (text === undefined || text.includes('\0')) throw new Error(`${path} is not UTF-8 text: save it as UTF-8`)
  return text
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
