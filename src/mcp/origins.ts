import { badRequest } from '../base/errors.ts'
import { isHttpUrl } from '../base/http-url.ts'
import type { HttpRequest } from '../base/http/request.ts'
import { addressesOfThisMachine, isEverywhere } from '../base/listen.ts'

export type OriginParts = {
  /** Where the tool server listens. */
  readonly hostname: string
  readonly port: number
  readonly publicUrl: string | undefined
  /** Further allowed hosts, in the form of a Host header. */
  readonly hosts: readonly string[]
  /** Origins whose pages the operator allows by name. */
  readonly origins: readonly string[]
}

const loopback = ['localhost', '127.0.0.1', '[::1]']

/**
 * Refuses what a page in a browser could send on behalf of its visitor: a foreign Origin, or a host name that was made
 * to point here for a moment (DNS rebinding). Applies to every address it listens on, not only to loopback.
 */
export function makeOriginCheck(parts: OriginParts): (request: HttpRequest) => void {
  const allowed = new Set(allowedHosts(parts))
  const origins = new Set(parts.origins)
  return ({ headers }) => {
    const host = headers.get('host') ?? ''
    if (!allowed.has(host.toLowerCase())) {
      throw badRequest('This host is not served here: name it in the setting mcp.hosts.', 'Host', 'invalid_host')
    }
    const origin = headers.get('origin')
    if (origin !== null && !origins.has(origin) && !isOurs(origin, allowed)) {
      throw badRequest('Pages of this origin may not use the tool server.', 'Origin', 'invalid_origin')
    }
  }
}

function allowedHosts({ hostname, port, publicUrl, hosts }: OriginParts): string[] {
  const own = [...loopback, ...arrivalAddresses(hostname)].flatMap((name) => withPort(name, port))
  const given = publicUrl === undefined ? [] : hostsOf(new URL(publicUrl))
  return [...own, ...given, ...hosts.map((host) => host.toLowerCase())]
}

/** The addresses at which connections can arrive: the given one, or all of this machine. */
function arrivalAddresses(hostname: string): string[] {
  return (isEverywhere(hostname) ? addressesOfThisMachine() : [hostname]).map(bracketed)
}

function bracketed(address: string): string {
  return address.includes(':') && !address.startsWith('[') ? `[${address}]` : address.toLowerCase()
}

const defaultPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/** The scheme's default port may be written or left out. */
function withPort(name: string, port: number): string[] {
  return port === 80 ? [name, `${name}:80`] : [`${name}:${port}`]
}

function hostsOf({ host, hostname, port, protocol }: URL): string[] {
  return port === '' ? [host, `${hostname}:${defaultPorts[protocol] ?? ''}`] : [host]
}

function isOurs(origin: string, allowed: ReadonlySet<string>): boolean {
  return isHttpUrl(origin) && hostsOf(new URL(origin)).some((host) => allowed.has(host))
}
