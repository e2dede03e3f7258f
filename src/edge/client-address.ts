import type { Connection } from '../base/http/connection.ts'
import type { HttpRequest } from '../base/http/request.ts'
import { isAddress } from '../base/public-address.ts'

/** Whether the operator named this address as a trusted proxy's. */
export type IsProxy = (address: string) => boolean

/**
 * Trusts a forwarding header only from a proxy that the operator named, and in it only what such proxies wrote: each
 * appends its caller's address at the right, so the header is read from there, up to the first address that is not a
 * named proxy's. Anything further left is the client's own claim.
 */
export function clientAddress(request: HttpRequest, connection: Pick<Connection, 'address'>, isProxy: IsProxy): string {
  let address = connection.address()
  if (!isProxy(address)) return address
  const callers = request.headers.get('x-forwarded-for')?.split(',') ?? []
  while (isProxy(address)) {
    const caller = bare(callers.pop() ?? '')
    // If a proxy does not name its caller, the proxy's own address is the last one known.
    if (!isAddress(caller)) return address
    address = caller
  }
  return address
}

/** Drops the port, which some proxies add. */
function bare(entry: string): string {
  const text = entry.trim()
  return /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
}
