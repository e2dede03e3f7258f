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

// Keys of ours and of the vendors, webhook secrets and passwords in database addresses.
const secretPattern =
  /\b(?:sk|adm|mtr)[-_][A-Za-z0-9_-]{8,}|\bwhsec_[A-Za-z0-9+/=_-]{8,}|(?<=:\/\/[^:@/\s]{0,64}:)[^@/\s]+(?=@)/g

/** Any text that goes to a log or a client, without what looks like a secret. */
export function scrub(text: string): string {
  return text.replace(secretPattern, '[redacted]')
}

// Local servers are given a word for a key; a word is no secret, and every sentence may hold it.
const keyCharactersMin = 8

// Vendors name the account they were asked by: OpenAI its organization, xAI the team and the key's id.
const accountPattern = /\b(?:org|proj)[-_][A-Za-z0-9]{16,}|(?<=\b(?:Team|API key ID): )[\w-]+/g

/**
 * A vendor's words without what no answer may name: the key we use there, whose it is, the vendor's address, and whatever
 * looks like a secret.
 */
export function withoutSecrets(text: string, { baseUrl, credential }: { baseUrl: string; credential: string }): string {
  const hidden = credential.length < keyCharactersMin ? text : text.replaceAll(credential, '[redacted]')
  return scrub(hidden.replaceAll(new URL(baseUrl).host, '[redacted]').replace(accountPattern, '[redacted]'))
}

function clean(fields: LogFields): LogFields {
  const cleaned: Record<string, LogFields[string]> = {}
  for (const [name, value] of Object.entries(fields)) cleaned[name] = typeof value === 'string' ? scrub(value) : value
  return cleaned
}
