import { pino } from 'pino'

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

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

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

// Keys of ours and of the vendors, webhook secrets and passwords in database addresses.
const secretPattern = /\b(?:sk|adm|whsec)[-_][A-Za-z0-9_-]{8,}|(?<=:\/\/[^:@/\s]{0,64}:)[^@/\s]+(?=@)/g

/** Any text that goes to a log or a client, without what looks like a secret. */
export function scrub(text: string): string {
  return text.replace(secretPattern, '[redacted]')
}

function clean(fields: LogFields): LogFields {
  const cleaned: Record<string, LogFields[string]> = {}
  for (const [name, value] of Object.entries(fields)) cleaned[name] = typeof value === 'string' ? scrub(value) : value
  return cleaned
}
