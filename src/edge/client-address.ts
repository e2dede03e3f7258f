import type { Connection } from '../base/listen.ts'
import { isAddress } from '../base/public-address.ts'

/** Whether the operator named this address as one of a proxy. */
export type IsProxy = (address: string) => boolean

/**
 * Believes a forwarding header only from a proxy that the operator named, and of it only what such a proxy wrote: each adds
 * at the right whom it was called by, so it is read from there, up to the first that is none of them. What stands further
 * left is the client's own word.
 */
export function clientAddress(request: Request, connection: Pick<Connection, 'address'>, isProxy: IsProxy): string {
  let address = connection.address()
  if (!isProxy(address)) return address
  const callers = request.headers.get('x-forwarded-for')?.split(',') ?? []
  while (isProxy(address)) {
    const caller = bare(callers.pop() ?? '')
    // A proxy that does not say who called it is the last that is known.
    if (!isAddress(caller)) return address
    address = caller
  }
  return address
}

/** Some proxies add the port. */
function bare(entry: string): string {
  const text = entry.trim()
  return /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
}
