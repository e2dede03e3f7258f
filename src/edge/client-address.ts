import type { Address } from '../base/listen.ts'

/** Believes a forwarding header only from a proxy that the operator named, and then its last entry: that proxy's own. */
export function clientAddress(request: Request, peer: Address, trustedProxies: ReadonlySet<string>): string {
  const address = peer()
  if (trustedProxies.size === 0 || !trustedProxies.has(address)) return address
  return request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() || address
}
