import { closeSync, fsyncSync, openSync } from 'node:fs'

/** Until its folder is synced, a power cut may leave a new file without its name. */
export function syncFolder(folder: string, sync: (fd: number) => void = fsyncSync): void {
  const fd = openSync(folder, 'r')
  try {
    sync(fd)
  } finally {
    closeSync(fd)
  }
}
