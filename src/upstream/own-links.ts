import type { IsOwnLink } from '../base/untrusted-url.ts'

/** What the simulators keep, by vendor, and what we keep. Nothing else that either of them serves is meant. */
const simulatedResult = /^\/[\w-]+\/(?:video-)?results\/[^/]+$/
const keptResult = /^\/artifacts\/[^/]+$/

/**
 * In sandbox mode what one model made is at an address of this machine, and the next model is to take it all the same, as it
 * would at real vendors. Exactly these two origins, as we write them ourselves, and only the paths of results; of both the
 * signature in the link is checked by whoever serves it. Where vendors are real there are no simulators and no such links.
 */
export function makeOwnLinks(addresses: { simulators: string | undefined; publicUrl: string }): IsOwnLink {
  const { simulators, publicUrl } = addresses
  if (simulators === undefined) return () => false
  return (link) => isBelow(simulators, link, simulatedResult) || isBelow(publicUrl, link, keptResult)
}

/** The text is compared as it is written: no other spelling of the same host, and nobody's name before it. */
function isBelow(origin: string, link: string, path: RegExp): boolean {
  if (!link.startsWith(`${origin}/`) || !URL.canParse(link)) return false
  const [url, base] = [new URL(link), new URL(`${origin}/`)]
  const isThere = url.origin === base.origin && url.pathname.startsWith(base.pathname)
  return isThere && path.test(url.pathname.slice(base.pathname.length - 1))
}
