import ipaddr from 'ipaddr.js'

// Addresses that look public and are not: a cloud's own servers, reached from inside of its machines alone.
const insideClouds: ReadonlySet<string> = new Set(['168.63.129.16'])

// All of today's public IPv6. Beyond it lie the old forms that wrap an IPv4 address, such as ::127.0.0.1.
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an address is one host on the open internet. Everything else is refused, known by name or not: loopback,
 * private and link-local nets, carriers' NAT, multicast, documentation, metadata servers, and every IPv6 form that hides
 * an IPv4 address (mapped, NAT64, 6to4, Teredo).
 */
export function isPublicAddress(text: string): boolean {
  // A zone names a link of this machine.
  if (text.includes('%') || !isAddress(text) || insideClouds.has(text)) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  return address instanceof ipaddr.IPv4 || address.match(globalUnicast)
}

/** An address as resolvers and URLs spell it: four decimal parts, or IPv6 without brackets. */
export function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text)
}
