/** What the system calls a failure, such as ENOENT; undefined where it is none of the system's. */
export function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
}

/** There is no such file or folder. */
export function isMissing(thrown: unknown): boolean {
  return codeOf(thrown) === 'ENOENT'
}

/** There is no room left on the disk, or none that this user may have. */
export function isDiskFull(thrown: unknown): boolean {
  const code = codeOf(thrown)
  return code === 'ENOSPC' || code === 'EDQUOT'
}

/** This process, or the whole system, has as many files and connections open as it may. */
export function isOutOfFiles(thrown: unknown): boolean {
  const code = codeOf(thrown)
  return code === 'EMFILE' || code === 'ENFILE'
}
