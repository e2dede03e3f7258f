import { cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './temporary-folder.ts'

const root = join(import.meta.dir, '../..')

/** The program in a folder of its own, without a bundle: `bin/turnpike` there runs the sources. */
export function copyProgram(name: string): string {
  const folder = temporaryFolder(name)
  for (const part of ['bin', 'src', 'scripts', 'package.json', 'tsconfig.json']) {
    cpSync(join(root, part), join(folder, part), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}
