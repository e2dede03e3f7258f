import { isAddress, isPublicAddress } from '../base/public-address.ts'
import { readTarget, type GuardPolicy } from '../base/untrusted-url.ts'

/**
 * Whether a link that is passed on unfetched may be public, as far as its own text shows. The vendor fetches it from
 * where it stands; a link into its network or ours is no request that we hand on.
 */
export function isPublicLink(link: string, schemes: GuardPolicy['schemes']): boolean {
  try {
    const { host } = readTarget(link, { schemes, addresses: 'public', ports: 'any' })
    if (host === 'localhost' || host.endsWith('.localhost')) return false
    return !isAddress(host) || isPublicAddress(host)
  } catch {
    return false
  }
}
