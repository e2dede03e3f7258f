import { isAddress, isPublicAddress } from '../base/public-address.ts'
import { readTarget, type GuardPolicy } from '../base/untrusted-url.ts'

/** Top-level names that exist only in private networks (RFC 6761, 6762, 8375; ICANN does not delegate the others). */
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
 * Whether a link that is passed on unfetched may be public, judging by its text alone. The vendor fetches it from
 * inside its own network, so a link that leads into that network or ours is not passed on.
 */
export function isPublicLink(link: string, schemes: GuardPolicy['schemes']): boolean {
  try {
    const { host } = readTarget(link, { schemes, addresses: 'public', ports: 'any' })
    return isPublicHost(host)
  } catch {
    return false
  }
}

/** Whether a host, written without brackets, may be public; a name is not looked up. */
export function isPublicHost(host: string): boolean {
  if (isAddress(host)) return isPublicAddress(host)
  // A dot at the end only keeps the resolver from completing the name, as in "models.default.svc.cluster.local.".
  const labels = host.replace(/\.$/, '').split('.')
  // The resolver completes a name without a dot with its own network's domain.
  return labels.length > 1 && !ownNetworks.has(labels.at(-1) ?? '')
}
