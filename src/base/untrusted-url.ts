import { isIPv6 } from 'node:net'
import { GatewayError } from './errors.ts'
import { portOf } from './http-url.ts'
import { isAddress, type Reach } from './public-address.ts'

/** Whether a link leads to a result that this process itself gave out, and may be fetched although it is not public. */
export type IsOwnLink = (link: string) => boolean

/** What an operator allows beyond the open internet; a client never decides any of it. */
export type GuardPolicy = {
  readonly schemes: 'https' | 'https-and-http'
  /** Beyond public addresses: this machine, for sandbox mode; private networks, for receivers inside a company. */
  readonly addresses: Reach
  readonly ports: readonly number[] | 'any'
  /** Links that are exempt from the three rules above. The targets of their redirects are not. */
  readonly isOwn?: IsOwnLink
}

export const strictPolicy: GuardPolicy = { schemes: 'https', addresses: 'public', ports: [443, 80] }

/** One message for every unreachable host: a client must not learn which names and addresses exist inside. */
const notReached = 'The host in the URL cannot be reached.'

const words = {
  malformed: 'The URL is not a plain absolute URL.',
  scheme: 'The URL must begin with https://.',
  credentials: 'The URL must not hold a user name or password.',
  port: 'The URL names a port that is not allowed.',
  'not-public': notReached,
  unresolved: notReached,
  // The name server did not answer, which says nothing about the host.
  'lookup-slow': notReached,
  unreachable: notReached,
  broken: 'The server in the URL broke off its answer.',
  'too-slow': 'The server in the URL did not answer in time.',
  'too-large': 'The content of the URL is too large.',
  compressed: 'The server in the URL sent compressed content that was not requested.',
  redirects: 'The URL redirects too often.',
} as const

export type RefusalReason = keyof typeof words

/** A client's URL is not fetched. `reason` is for our own code, the message is for the client that gave the URL. */
export class GuardRefusal extends GatewayError {
  readonly reason: RefusalReason

  constructor(reason: RefusalReason, cause?: unknown) {
    super('bad-request', words[reason], { code: 'invalid_url', ...(cause !== undefined && { cause }) })
    this.name = 'GuardRefusal'
    this.reason = reason
  }
}

// Signed links are long, but servers refuse anything beyond this anyway.
const urlCharactersMax = 8 * 1024

export type Target = {
  readonly url: URL
  /** Without brackets. */
  readonly host: string
  readonly port: number
  readonly isOwn: boolean
}

/** Parses a URL and checks everything that its text alone shows; addresses are checked later. */
export function readTarget(text: string, policy: GuardPolicy): Target {
  // The URL parser drops tabs and line breaks, so that a URL could mean something other than it seems to say.
  // oxlint-disable-next-line no-control-regex
  if (text.length > urlCharactersMax || /[\u0000-\u0020\u007f]/.test(text) || !URL.canParse(text)) {
    throw new GuardRefusal('malformed')
  }
  const url = new URL(text)
  const isOwn = policy.isOwn?.(text) === true
  const isAllowedScheme = url.protocol === 'https:' || (url.protocol === 'http:' && policy.schemes === 'https-and-http')
  if (!isAllowedScheme && !isOwn) throw new GuardRefusal('scheme')
  if (url.username !== '' || url.password !== '') throw new GuardRefusal('credentials')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (host === '' || host.endsWith('.')) throw new GuardRefusal('malformed')
  // The URL parser folds 0x7f000001, 2130706433 and 127.1 into 127.0.0.1. No honest client writes an address like that.
  const written = /^\/\/([^/?#\\:]*)/.exec(text.slice(url.protocol.length))?.[1]
  if (isAddress(host) && !isIPv6(host) && written !== host) throw new GuardRefusal('malformed')
  const port = portOf(url)
  if (policy.ports !== 'any' && !policy.ports.includes(port) && !isOwn) throw new GuardRefusal('port')
  return { url, host, port, isOwn }
}
