import { bearerOf } from '../bearer.ts'
import { invalid, MessagesError } from './errors.ts'

export type Version = '2023-06-01' | '2026-10-21'

/** What the request's headers say: the key, the version of the API, and the betas switched on. */
export type Head = {
  readonly key: string
  readonly version: Version
  /** Names without their dates: `context-management` for `context-management-2025-06-27`. */
  readonly betas: ReadonlySet<string>
}

export function readHead(headers: Headers): Head {
  return { key: readKey(headers), version: readVersion(headers), betas: readBetas(headers) }
}

/** SDKs before 1.0 send `x-api-key`, newer ones a bearer token; the vendor accepts both from every client. */
function readKey(headers: Headers): string {
  const bearer = bearerOf(headers)
  const key = bearer ?? headers.get('x-api-key') ?? ''
  if (key === '') {
    const message = 'x-api-key header is required'
    throw new MessagesError({ status: 401, message })
  }
  if (key === 'bad-key') {
    throw new MessagesError({
      status: 401,
      message: bearer === undefined ? 'invalid x-api-key' : 'Invalid bearer token',
    })
  }
  return key
}

function readVersion(headers: Headers): Version {
  const version = headers.get('anthropic-version')
  if (version === null) throw invalid('anthropic-version', 'header is required')
  if (version === '2023-06-01' || version === '2026-10-21') return version
  throw invalid('anthropic-version', `"${version}" is not a valid version`)
}

function readBetas(headers: Headers): ReadonlySet<string> {
  const names = (headers.get('anthropic-beta') ?? '').split(',').map((name) => name.trim())
  return new Set(names.filter((name) => name !== '').map(withoutDate))
}

const dated = /^([a-z0-9]+(?:-[a-z0-9]+)*?)-\d{4}-?\d{2}-?\d{2}$/

/** The list of betas changes with every release, so any name that carries a date counts as real. */
function withoutDate(beta: string): string {
  const name = dated.exec(beta)?.[1]
  if (name !== undefined) return name
  const message = `Unexpected value(s) \`${beta}\` for the \`anthropic-beta\` header. Please consult our documentation at docs.claude.com or try again without the header.`
  throw invalid('', message)
}
