import { pino } from 'pino'
import { scrub } from './scrub.ts'

/**
 * Logs are an allowlist: a line holds what its caller names, and callers name no bodies, no headers and no queries.
 * The redaction below is the second line of defence, not the first.
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
  const logger = options.write === undefined ? pino(settings) : pino(settings, { write: options.write })
  return {
    info: (fields, message) => logger.info(clean(fields), message),
    warn: (fields, message) => logger.warn(clean(fields), message),
    error: (fields, message) => logger.error(clean(fields), message),
  }
}

export const silentLog: Log = { info: () => {}, warn: () => {}, error: () => {} }

function clean(fields: LogFields): LogFields {
  const cleaned: Record<string, LogFields[string]> = {}
  for (const [name, value] of Object.entries(fields)) cleaned[name] = typeof value === 'string' ? scrub(value) : value
  return cleaned
}
