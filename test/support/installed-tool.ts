import { spawnSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const installMsMax = 180_000

export type WantedTool = {
  readonly name: string
  /** Its package and the exact version. */
  readonly package: string
  readonly version: string
  /** Where it is in a folder, if it is there. */
  readonly found: (folder: string) => string | undefined
}

/**
 * Where a vendor's command-line tool is, installed into a folder of the machine's own on the first call: such tools have some
 * 400 MB, too much for everybody who checks the project out. Undefined, with the reason printed, where it cannot be had.
 */
export function findInstalled({ name, version, found, ...wanted }: WantedTool): string | undefined {
  const cache = join(tmpdir(), `turnpike-${name}-${version}`)
  const known = found(cache)
  if (known !== undefined) return known
  const folder = mkdtempSync(join(tmpdir(), `turnpike-${name}-install-`))
  const release = `${wanted.package}@${version}`
  // Its script would only copy a binary that stands beside it.
  const flags = ['--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { status, stderr } = spawnSync('npm', ['install', ...flags, release], {
    cwd: folder,
    timeout: installMsMax,
    encoding: 'utf8',
  })
  if (status !== 0 || found(folder) === undefined) {
    rmSync(folder, { recursive: true, force: true })
    process.stderr.write(`${name} is not tested: ${release} could not be installed. ${stderr.slice(0, 300)}\n`)
    return undefined
  }
  // Another run may have been faster; then its folder stands, and ours is not needed.
  if (found(cache) === undefined) renameSync(folder, cache)
  else rmSync(folder, { recursive: true, force: true })
  return found(cache)
}
