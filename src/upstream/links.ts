import { GatewayError } from '../base/errors.ts'
import { makeGuardedFetch, type Fetched, type GuardedFetch } from '../base/guarded-fetch.ts'
import { lookUp } from '../base/look-up.ts'
import { GuardRefusal } from '../base/untrusted-url.ts'
import { isPublicHost } from '../wire/public-link.ts'
import type { VendorResponse, StepCall } from '../vendors/vendor.ts'
import type { Channel } from './channels.ts'

type ClientLink = Extract<StepCall, { transport: 'guarded' }>
type VendorLink = Extract<StepCall, { transport: 'linked' }>
type Place = Pick<Channel, 'baseUrl' | 'isSimulator'>
type LinkedFile = VendorResponse & { readonly mediaType: string }

/** Fetches the file behind a link that a vendor gave in its answer, or a client in its request. */
export type FetchLink = (link: ClientLink | VendorLink, channel: Place, signal: AbortSignal) => Promise<LinkedFile>

// A vendor's large image takes a while, and a video has a limit of its own. A client's link has the guard's own limit,
// a quarter of this, because it occupies a place of ours for as long as a stranger's server likes.
const vendorTotalMs = 60_000

/**
 * A vendor's link may be http, and may lead into a private network only where the vendor itself was configured to be in
 * one. A client's link has the rules for strangers. Neither is ever sent a key. When `stopping` aborts, fetches under
 * way fail with its reason.
 */
export function makeFetchLink(strangers: GuardedFetch, stopping?: AbortSignal): FetchLink {
  const open = { schemes: 'https-and-http', ports: 'any' } as const
  // What a vendor has made is paid for, so its host name is not looked up in the queue of names that strangers gave.
  const world = { resolve: lookUp }
  const ofPublicVendors = makeGuardedFetch(open, world)
  const ofPrivateVendors = makeGuardedFetch({ ...open, addresses: 'private' }, world)

  async function fetchOfClient({ url, bytesMax, at }: ClientLink, signal: AbortSignal): Promise<LinkedFile> {
    try {
      const fetched = await strangers.get(url, { bytesMax, signal })
      if (fetched.status === 200) return fileOf(fetched)
      throw new GatewayError('bad-request', `The URL answered ${fetched.status}.`, { code: 'invalid_url' })
    } catch (thrown) {
      throw at === undefined ? thrown : placed(thrown, at)
    }
  }

  async function fetchOfVendor(link: VendorLink, channel: Place, signal: AbortSignal): Promise<LinkedFile> {
    const { url, bytesMax, totalMs = vendorTotalMs } = link
    // Simulators may be anywhere the operator runs them, also under a host name of a private network.
    const guard = channel.isSimulator === true || isPrivate(channel.baseUrl) ? ofPrivateVendors : ofPublicVendors
    try {
      const fetched = await guard.get(url, { bytesMax, totalMs, signal })
      if (fetched.status === 200) return fileOf(fetched)
      throw new Error(`a vendor's link answered ${fetched.status}`)
    } catch (thrown) {
      // The client has left, or the node stops: neither is the vendor's failure.
      if (thrown instanceof GatewayError && !(thrown instanceof GuardRefusal)) throw thrown
      throw new GatewayError('upstream-failed', "The result of the model's vendor could not be fetched.", {
        cause: thrown,
      })
    }
  }

  return (link, channel, client) => {
    const signal = stopping === undefined ? client : AbortSignal.any([client, stopping])
    return link.transport === 'guarded' ? fetchOfClient(link, signal) : fetchOfVendor(link, channel, signal)
  }
}

/** Adds the field at fault to a refusal of the guard. */
function placed(thrown: unknown, at: string): unknown {
  if (!(thrown instanceof GatewayError) || thrown.kind !== 'bad-request') return thrown
  const { message, details } = thrown
  const said = `Invalid '${at}': ${message.charAt(0).toLowerCase()}${message.slice(1)}`
  return new GatewayError('bad-request', said, { ...details, param: at, cause: thrown })
}

function fileOf({ mediaType, body }: Fetched): LinkedFile {
  return { body, mediaType, header: (name: string) => (name === 'content-type' ? mediaType : null) }
}

function isPrivate(baseUrl: string): boolean {
  return !isPublicHost(new URL(baseUrl).hostname.replace(/^\[|\]$/g, ''))
}

/** A channel never changes, so its address is judged once. */
const known = new WeakMap<Channel, boolean>()

/**
 * Whether the server of a channel is on the operator's own network. It would fetch a client's link from inside, and
 * reach there what the client cannot.
 */
export function isInside(channel: Channel): boolean {
  if (channel.isSimulator === true) return false
  const remembered = known.get(channel)
  if (remembered !== undefined) return remembered
  const found = isPrivate(channel.baseUrl)
  known.set(channel, found)
  return found
}
