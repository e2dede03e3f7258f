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
  /** The path of the tool within a folder, if it is there. */
  readonly found: (folder: string) => string | undefined
}

/**
 * The path of a vendor's command-line tool, which the first call installs into a temporary folder of the machine,
 * because such tools take some 400 MB, too much for every checkout. Prints the reason and gives undefined if it cannot
 * be installed.
 */
export function findInstalled({ name, version, found, ...wanted }: WantedTool): string | undefined {
  const cache = join(tmpdir(), `turnpike-${name}-${version}`)
  const known = found(cache)
  if (known !== undefined) return known
  const folder = mkdtempSync(join(tmpdir(), `turnpike-${name}-install-`))
  const release = `${wanted.package}@${version}`
  // The package's install script would only copy a binary that is already beside it.
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
  // If another run was faster, its folder is used and this one is removed.
  if (found(cache) === undefined) renameSync(folder, cache)
  else rmSync(folder, { recursive: true, force: true })
  return found(cache)
}
