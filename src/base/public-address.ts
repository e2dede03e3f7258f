import ipaddr from 'ipaddr.js'

/** Which addresses beyond the public internet are allowed: none, this machine itself, or private networks as well. */
export type Reach = 'public' | 'loopback' | 'private'

// Metadata servers of clouds, which give a machine's credentials to any process on it. The first has a public address,
// the others private ones; those at link-local addresses are refused by their range and need no entry.
const insideClouds: ReadonlySet<string> = new Set(['168.63.129.16', '100.100.100.200', 'fd00:ec2::254', 'fd20:ce::254'])

// All of today's public IPv6 addresses. Outside it are the old forms that wrap an IPv4 address, such as ::127.0.0.1.
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an address is one host on the public internet. Everything else is refused, listed here or not: loopback,
 * private and link-local networks, carrier-grade NAT, multicast, documentation ranges, metadata servers, and every IPv6
 * form that hides an IPv4 address (mapped, NAT64, 6to4, Teredo).
 */
export function isPublicAddress(text: string): boolean {
  // A zone index (`%eth0`) names a network interface of this machine.
  if (text.includes('%') || !isAddress(text) || insideClouds.has(text)) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  return address instanceof ipaddr.IPv4 || address.match(globalUnicast)
}

/**
 * Whether an address that is not public is allowed by `reach`. Link-local addresses never are, because clouds keep
 * their metadata servers there, nor is an IPv4 address hidden in an IPv6 one.
 */
export function isWithinReach(text: string, reach: Reach): boolean {
  if (reach === 'public' || text.includes('%') || !isAddress(text)) return false
  const address = ipaddr.parse(text)
  if (insideClouds.has(address.toString())) return false
  const range = address.range()
  return range === 'loopback' || (reach === 'private' && privateRanges.has(range))
}

const privateRanges: ReadonlySet<string> = new Set(['private', 'uniqueLocal', 'carrierGradeNat'])

/** Whether a text is an address as resolvers and URLs spell it: four decimal parts, or IPv6 without brackets. */
export function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text)
}
