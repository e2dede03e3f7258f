import { isAddress, isPublicAddress } from '../base/public-address.ts'
import { readTarget, type GuardPolicy } from '../base/untrusted-url.ts'

/** The last word of names that only a network of one's own knows (RFC 6761, 6762, 8375; ICANN keeps the rest free). */
const ownNetworks: ReadonlySet<string> = new Set([
  'localhost',
  'localdomain',
  'local',
  'internal',
  'intranet',
  'private',
  'corp',
  'home',
  'lan',
  'arpa',
])

/**
 * Whether a link that is passed on unfetched may be public, as far as its own text shows. The vendor fetches it from
 * where it stands; a link into its network or ours is no request that we hand on.
 */
export function isPublicLink(link: string, schemes: GuardPolicy['schemes']): boolean {
  try {
    const { host } = readTarget(link, { schemes, addresses: 'public', ports: 'any' })
    if (isAddress(host)) return isPublicAddress(host)
    const labels = host.split('.')
    // A name without a dot is completed by the network that it is looked up in.
    return labels.length > 1 && !ownNetworks.has(labels.at(-1) ?? '')
  } catch {
    return false
  }
}
