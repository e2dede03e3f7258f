/** The system's code for a failure, such as ENOENT; undefined for errors that carry no code. */
export function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
}

/** The file or folder does not exist. */
export function isMissing(thrown: unknown): boolean {
  return codeOf(thrown) === 'ENOENT'
}

/** The disk is full, or this user's quota on it is used up. */
export function isDiskFull(thrown: unknown): boolean {
  const code = codeOf(thrown)
  return code === 'ENOSPC' || code === 'EDQUOT'
}

/** This process, or the whole system, has reached its limit of open files and connections. */
export function isOutOfFiles(thrown: unknown): boolean {
  const code = codeOf(thrown)
  return code === 'EMFILE' || code === 'ENFILE'
}
