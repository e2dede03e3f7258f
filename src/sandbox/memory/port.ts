import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Listener } from '../../base/listen.ts'
import { listen, type ListenOptions } from '../listen.ts'

/**
 * Opens the chosen port. If none was chosen, opens the port of the last run, so that links already given out still
 * work, or a free port if another process has taken that one.
 */
export function listenAgain(options: ListenOptions, folder: string | undefined): Listener {
  if (folder === undefined) return listen(options)
  const file = join(folder, 'port')
  const listener = options.port === 0 ? listenAt(readPort(file), options) : listen(options)
  remember(file, folder, listener.port)
  return listener
}

function listenAt(remembered: number, options: ListenOptions): Listener {
  try {
    return listen({ ...options, port: remembered })
  } catch (thrown) {
    if (remembered === 0) throw thrown
    return listen(options)
  }
}

function readPort(file: string): number {
  try {
    const text = readFileSync(file, 'utf8').trim()
    return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : 0
  } catch {
    return 0
  }
}

/** Errors are ignored here, because the journal in the same folder reports a disk that cannot be written. */
function remember(file: string, folder: string, port: number): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(file, `${port}\n`, { mode: 0o600 })
  } catch {
    // The next start has another port.
  }
}
