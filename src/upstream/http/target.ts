import { BoundedMap } from '../../base/bounded-map.ts'
import { portOf } from '../../base/http-url.ts'

/** Where a call goes, in the form that a socket and a request head need. */
export type Target = {
  /** Connections to one origin are shared by all calls to it. */
  readonly origin: string
  readonly isSecure: boolean
  readonly hostname: string
  readonly port: number
  /** How the head of a request to this target begins, after the method. */
  readonly headStart: string
}

// Some vendors stand behind a firewall that refuses requests without a user agent.
const usual = 'user-agent: turnpike\r\naccept: */*\r\naccept-encoding: identity\r\n'

// A channel's calls go to a handful of addresses; only those that name a task or a file are new each time.
const targetsMax = 1_000
const known = new BoundedMap<string, Target>(targetsMax)

/** Parsing takes longer than everything else that is done to an address, so parsed targets are remembered. */
export function targetOf(url: string): Target {
  const remembered = known.get(url)
  if (remembered !== undefined) return remembered
  const parsed = new URL(url)
  const { protocol, hostname, host, origin, pathname, search } = parsed
  const isSecure = protocol === 'https:'
  if (!isSecure && protocol !== 'http:') throw new Error(`a vendor's address is not http: ${protocol}`)
  const target = {
    origin,
    isSecure,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: portOf(parsed),
    headStart: ` ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n${usual}`,
  }
  known.set(url, target)
  return target
}
