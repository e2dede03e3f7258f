import type { IsOwnLink } from '../base/untrusted-url.ts'

/** The paths of results that the simulators keep, by vendor, and that we keep. No other path of either is accepted. */
const simulatedResult = /^\/[\w-]+\/(?:video-)?results\/[^/]+$/
const keptResult = /^\/artifacts\/[^/]+$/

/**
 * In sandbox mode what one model made is at an address of this machine, and the next model has to accept it, as it
 * would at real vendors. Only these two origins count, as we write them ourselves, and only the paths of results; each
 * origin checks the signature in its own links. With real vendors there are no simulators and no such links.
 */
export function makeOwnLinks(addresses: { simulators: string | undefined; publicUrl: string }): IsOwnLink {
  const { simulators, publicUrl } = addresses
  if (simulators === undefined) return () => false
  return (link) => isBelow(simulators, link, simulatedResult) || isBelow(publicUrl, link, keptResult)
}

/** Compares the text as it is written: no other spelling of the same host, and no user name before it. */
function isBelow(origin: string, link: string, path: RegExp): boolean {
  if (!link.startsWith(`${origin}/`) || !URL.canParse(link)) return false
  const [url, base] = [new URL(link), new URL(`${origin}/`)]
  const isThere = url.origin === base.origin && url.pathname.startsWith(base.pathname)
  return isThere && path.test(url.pathname.slice(base.pathname.length - 1))
}
