import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './temporary-folder.ts'

const root = join(import.meta.dir, '../..')

/** In `node_modules`: npm's list of what is installed there. */
export const installedPackages = '.package-lock.json'

/** The program in a folder of its own, without a bundle: `bin/turnpike` there runs the sources. */
export function copyProgram(name: string): string {
  const folder = temporaryFolder(name)
  for (const part of ['bin', 'src', 'scripts', 'package.json', 'tsconfig.json']) {
    cpSync(join(root, part), join(folder, part), { recursive: true })
  }
  const packages = join(folder, 'node_modules')
  mkdirSync(packages)
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== installedPackages) symlinkSync(join(root, 'node_modules', name), join(packages, name))
  }
  cpSync(join(root, 'node_modules', installedPackages), join(packages, installedPackages))
  return folder
}
