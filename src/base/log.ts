import { pino } from 'pino'
import { scrub } from './scrub.ts'

/**
 * Logs are an allowlist: a line holds only what its caller names, and callers name no bodies, no headers and no
 * queries. The redaction below is the second line of defence, not the first.
 */
export type Log = {
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

export type LogFields = Readonly<Record<string, string | number | boolean | undefined | null>>

export type LogLevel = 'info' | 'warn' | 'error' | 'silent'

export function makeLog(options: { level: LogLevel; write?: (line: string) => void }): Log {
  const settings = { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime }
  const logger = pino(settings, { write: options.write ?? writerTo(process.stdout) })
  return {
    info: (fields, message) => logger.info(clean(fields), message),
    warn: (fields, message) => logger.warn(clean(fields), message),
    error: (fields, message) => logger.error(clean(fields), message),
  }
}

// How much may wait for the log's reader: minutes of the busiest log, and little beside the memory of the process.
const unreadBytesMax = 16 * 1024 * 1024

/** Buffers up to `unreadBytesMax` for a reader that has stopped; further lines are dropped and counted. */
function writerTo(stream: NodeJS.WriteStream): (line: string) => void {
  let unreadBytes = 0
  let lostLines = 0

  function write(line: string): void {
    unreadBytes += line.length
    // The callback runs in any case, even if the line could not be written.
    stream.write(line, () => {
      unreadBytes -= line.length
    })
  }

  return (line) => {
    if (unreadBytes > unreadBytesMax) {
      lostLines++
      return
    }
    if (lostLines > 0) {
      const time = new Date().toISOString()
      write(
        `${JSON.stringify({ level: 40, time, lines: lostLines, msg: 'log lines could not be written and are lost' })}\n`,
      )
      lostLines = 0
    }
    write(line)
  }
}

export const silentLog: Log = { info: () => {}, warn: () => {}, error: () => {} }

function clean(fields: LogFields): LogFields {
  const cleaned: Record<string, LogFields[string]> = {}
  for (const [name, value] of Object.entries(fields)) cleaned[name] = typeof value === 'string' ? scrub(value) : value
  return cleaned
}
