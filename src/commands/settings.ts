import { existsSync, readFileSync } from 'node:fs'
import { readConfigFile, type ConfigFile } from '../config/file.ts'

const defaultFile = 'turnpike.yaml'

/** The file that `--config` names, or `turnpike.yaml` where there is one, or the defaults. */
export function loadSettings(path: string | undefined): { file: ConfigFile; path: string | undefined } {
  const found = path ?? (existsSync(defaultFile) ? defaultFile : undefined)
  if (found === undefined) return { file: readConfigFile('(defaults)', '', process.env), path: undefined }
  if (!existsSync(found)) throw new Error(`there is no file ${found}`)
  return { file: readConfigFile(found, readFileSync(found, 'utf8'), process.env), path: found }
}
