import { closeSync, fsyncSync, openSync } from 'node:fs'
import { codeOf } from './system-errors.ts'

// How file systems answer that sync files and not folders, among them some network shares and folders shared with a
// virtual machine. They may lose a new name at a power cut, which is no reason not to start at all.
const syncsNoFolders = new Set<unknown>(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP'])

/** Until its folder is synced, a power cut may leave a new file without its name. */
export function syncFolder(folder: string, sync: (fd: number) => void = fsyncSync): void {
  const fd = openSync(folder, 'r')
  try {
    sync(fd)
  } catch (thrown) {
    if (!syncsNoFolders.has(codeOf(thrown))) throw thrown
  } finally {
    closeSync(fd)
  }
}
