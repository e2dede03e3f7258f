import ipaddr from 'ipaddr.js'

/** How far beyond the open internet somebody may reach: no further, to this machine itself, or to private nets too. */
export type Reach = 'public' | 'loopback' | 'private'

// A cloud's own servers, which give whoever asks from inside of its machines their keys. The first looks public, the
// others private; those of link-local nets need no list.
const insideClouds: ReadonlySet<string> = new Set(['168.63.129.16', '100.100.100.200', 'fd00:ec2::254', 'fd20:ce::254'])

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

/**
 * Whether an address that is not public lies within reach all the same. Never one of a link, where clouds keep the servers
 * that hand out a machine's own keys, and never an IPv4 address that hides in an IPv6 one.
 */
export function isWithinReach(text: string, reach: Reach): boolean {
  if (reach === 'public' || text.includes('%') || !isAddress(text)) return false
  const address = ipaddr.parse(text)
  if (insideClouds.has(address.toString())) return false
  const range = address.range()
  return range === 'loopback' || (reach === 'private' && privateRanges.has(range))
}

const privateRanges: ReadonlySet<string> = new Set(['private', 'uniqueLocal', 'carrierGradeNat'])

/** An address as resolvers and URLs spell it: four decimal parts, or IPv6 without brackets. */
export function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text)
}
