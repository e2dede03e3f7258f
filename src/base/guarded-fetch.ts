import { request as overHttp, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as overHttps } from 'node:https'
import { isIPv6, type LookupFunction } from 'node:net'
import { GatewayError } from './errors.ts'
import { lookUpStranger, type LookUp } from './look-up.ts'
import { isAddress, isPublicAddress, isWithinReach } from './public-address.ts'
import { GuardRefusal, readTarget, strictPolicy, type GuardPolicy } from './untrusted-url.ts'
import type { RefusalReason, Target } from './untrusted-url.ts'
import { unlessAborted } from './within.ts'

/** What the guard takes from the outside world. Tests declare part of the loopback to be the public internet. */
export type Outside = {
  readonly resolve: LookUp
  isPublic(address: string): boolean
  /** Certificate authorities to trust instead of the usual ones. */
  readonly ca?: string
}

export type FetchLimits = {
  readonly bytesMax: number
  /** Time until a connection is established, including the look-up of its name; it starts anew for each redirect. */
  readonly connectMs?: number
  /** Time from the first check of the URL to the last byte, including redirects. */
  readonly totalMs?: number
  readonly redirectsMax?: number
  readonly signal?: AbortSignal
}

export type Fetched = {
  readonly status: number
  /** Lower-case and without parameters; '' where the server does not say. */
  readonly mediaType: string
  readonly body: Uint8Array
}

export type Message = { readonly headers: Readonly<Record<string, string>>; readonly body: string | Uint8Array }

export type GuardedFetch = {
  /** Refuses what a fetch would refuse before it connects; used at the moment when a client gives a URL. */
  check(url: string, limits?: Pick<FetchLimits, 'connectMs' | 'signal'>): Promise<void>
  get(url: string, limits: FetchLimits): Promise<Fetched>
  /**
   * Follows no redirect and reads only the first `bytesMax` bytes of the response. Once its head has arrived the
   * response counts, even if the body breaks off.
   */
  post(url: string, message: Message, limits: Omit<FetchLimits, 'redirectsMax'>): Promise<Fetched>
}

const connectMsDefault = 3_000
const totalMsDefault = 15_000
const redirectsMaxDefault = 3
const headBytesMax = 16 * 1024

/**
 * Fetches URLs that clients gave, which are never trusted: a URL is checked as it is written, again when its name is
 * resolved, and again for every redirect, and only the addresses that were checked are dialled. Each fetch has its own
 * connection, carries no cookie and no credential, and uses no proxy. It is not built on `fetch`, which cannot be told
 * which address to dial.
 */
export function makeGuardedFetch(allowed: Partial<GuardPolicy> = {}, world: Partial<Outside> = {}): GuardedFetch {
  const policy = { ...strictPolicy, ...allowed }
  // A foreign server must not redirect us to our own links.
  const { isOwn: _, ...redirectPolicy } = policy
  const outside: Outside = { resolve: lookUpStranger, isPublic: isPublicAddress, ...world }
  // Set explicitly, because an environment variable can turn the default off.
  const trust = { rejectUnauthorized: true, ...(outside.ca !== undefined && { ca: outside.ca }) }

  const isAllowed = (address: string) => outside.isPublic(address) || isWithinReach(address, policy.addresses)

  /** Resolves a host. One forbidden address refuses the whole host, because any of its addresses may be dialled. */
  async function addressesOf({ host, isOwn }: Target, signal: AbortSignal): Promise<readonly string[]> {
    const addresses = isAddress(host) ? [host] : await orAborted(outside.resolve(host), signal, 'unresolved')
    if (addresses.length === 0) throw new GuardRefusal('unresolved')
    if (!isOwn && !addresses.every(isAllowed)) throw new GuardRefusal('not-public')
    return addresses
  }

  async function dial(target: Target, ask: Ask, watch: Watch): Promise<IncomingMessage> {
    const { signal } = watch
    let late: RefusalReason = 'lookup-slow'
    const connected = watch.within(ask.connectMs, () => late)
    try {
      const addresses = await addressesOf(target, signal)
      late = 'unreachable'
      const options = { ...requestOf(target, ask, addresses), signal }
      const isSecure = target.url.protocol === 'https:'
      const request = isSecure ? overHttps({ ...options, ...trust }) : overHttp(options)
      request.on('socket', (socket) => socket.once(isSecure ? 'secureConnect' : 'connect', connected))
      return await orAborted(answerTo(request, ask.body), signal, 'unreachable')
    } finally {
      connected()
    }
  }

  async function follow(url: string, ask: Ask, watch: Watch): Promise<Fetched> {
    let target = readTarget(url, policy)
    for (let redirects = 0; ; redirects++) {
      const response = await dial(target, ask, watch)
      try {
        const next = ask.method === 'GET' ? redirectOf(response, target.url) : undefined
        if (next === undefined) return await readResponse(response, ask, watch.signal)
        if (redirects >= ask.redirectsMax) throw new GuardRefusal('redirects')
        target = readTarget(next, redirectPolicy)
      } finally {
        response.destroy()
      }
    }
  }

  return {
    async check(url, { connectMs = connectMsDefault, signal } = {}) {
      const watch = makeWatch(connectMs, 'lookup-slow', signal)
      try {
        await addressesOf(readTarget(url, policy), watch.signal)
      } finally {
        watch.end()
      }
    },
    get: (url, limits) => watched(limits, (watch) => follow(url, askOf('GET', limits), watch)),
    post: (url, message, limits) =>
      watched(limits, (watch) => follow(url, { ...askOf('POST', limits), ...checkMessage(message) }, watch)),
  }
}

type Ask = {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | undefined
  readonly bytesMax: number
  readonly connectMs: number
  readonly redirectsMax: number
}

function askOf(method: Ask['method'], limits: FetchLimits): Ask {
  const { bytesMax, connectMs = connectMsDefault, redirectsMax = redirectsMaxDefault } = limits
  return { method, headers: {}, body: undefined, bytesMax, connectMs, redirectsMax }
}

const credentialHeaders: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization'])

function checkMessage({ headers, body }: Message): Pick<Ask, 'headers' | 'body'> {
  for (const name of Object.keys(headers)) {
    if (credentialHeaders.has(name.toLowerCase())) throw new GatewayError('bug', `${name} must not go to a stranger`)
  }
  return { headers, body: Buffer.from(body) }
}

function requestOf({ url, host, port }: Target, ask: Ask, addresses: readonly string[]): RequestOptions {
  return {
    method: ask.method,
    host,
    port,
    path: url.pathname + url.search,
    headers: {
      accept: '*/*',
      'user-agent': 'turnpike',
      ...ask.headers,
      host: url.host,
      'accept-encoding': 'identity',
      ...(ask.body !== undefined && { 'content-length': String(ask.body.length) }),
    },
    // The name was resolved once, before: only the checked addresses are dialled, whatever it resolves to by now.
    lookup: answerWith(addresses),
    // Its own connection: a pool could hand out one that was dialled under another check.
    agent: false,
    maxHeaderSize: headBytesMax,
  }
}

function answerWith(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
  return (_name, options, callback) => {
    if (options.all === true) callback(null, found)
    else callback(null, found[0]?.address ?? '', found[0]?.family)
  }
}

function answerTo(request: ClientRequest, body: Uint8Array | undefined): Promise<IncomingMessage> {
  return new Promise((answered, failed) => {
    // Both error listeners stay: more errors may come after an abort, and one without a listener would end the process.
    request.on('error', failed)
    request.once('response', (response) => {
      response.on('error', () => {})
      answered(response)
    })
    request.end(body)
  })
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

function redirectOf({ statusCode = 0, headers }: IncomingMessage, from: URL): string | undefined {
  const { location } = headers
  if (!redirectStatuses.has(statusCode) || location === undefined) return undefined
  if (URL.canParse(location)) return location
  if (!URL.canParse(location, from.href)) throw new GuardRefusal('malformed')
  return new URL(location, from.href).href
}

async function readResponse(response: IncomingMessage, ask: Ask, signal: AbortSignal): Promise<Fetched> {
  const { headers, statusCode: status = 0 } = response
  const encoding = headers['content-encoding'] ?? 'identity'
  const isWhole = ask.method === 'GET'
  if (isWhole && encoding.toLowerCase() !== 'identity') throw new GuardRefusal('compressed')
  if (isWhole && Number(headers['content-length']) > ask.bytesMax) throw new GuardRefusal('too-large')
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of response as AsyncIterable<Uint8Array>) {
      chunks.push(chunk)
      length += chunk.length
      if (length > ask.bytesMax) break
    }
  } catch (thrown) {
    // For a POST, the status already says whether the message arrived, even if the response's body breaks off.
    if (isWhole) throw signal.aborted ? signal.reason : new GuardRefusal('broken', thrown)
  }
  if (isWhole && length > ask.bytesMax) throw new GuardRefusal('too-large')
  const mediaType = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  return { status, mediaType, body: Buffer.concat(chunks).subarray(0, ask.bytesMax) }
}

/** One signal for everything that can end a fetch: its own deadlines and the caller's signal. */
type Watch = {
  readonly signal: AbortSignal
  /** Adds a deadline; the returned function cancels it. */
  within(ms: number, late: () => RefusalReason): () => void
  end(): void
}

function makeWatch(totalMs: number, late: RefusalReason, outer: AbortSignal | undefined): Watch {
  const abort = new AbortController()
  const leave = () => {
    const reason: unknown = outer?.reason
    abort.abort(reason instanceof GatewayError ? reason : new GatewayError('client-gone', 'The client hung up.'))
  }
  const within = (ms: number, reason: () => RefusalReason) => {
    const timer = setTimeout(() => abort.abort(new GuardRefusal(reason())), ms)
    return () => clearTimeout(timer)
  }
  const calledOff = within(totalMs, () => late)
  if (outer?.aborted === true) leave()
  else outer?.addEventListener('abort', leave, { once: true })
  return {
    signal: abort.signal,
    within,
    end() {
      calledOff()
      outer?.removeEventListener('abort', leave)
    },
  }
}

async function watched<T>(limits: FetchLimits, work: (watch: Watch) => Promise<T>): Promise<T> {
  const watch = makeWatch(limits.totalMs ?? totalMsDefault, 'too-slow', limits.signal)
  try {
    return await work(watch)
  } finally {
    watch.end()
  }
}

/** Waits for a promise or an abort. A failure that is neither the abort nor a GatewayError is refused with `reason`. */
async function orAborted<T>(wait: Promise<T>, signal: AbortSignal, reason: RefusalReason): Promise<T> {
  try {
    return await unlessAborted(signal, wait)
  } catch (thrown) {
    if (signal.aborted) throw signal.reason
    throw thrown instanceof GatewayError ? thrown : new GuardRefusal(reason, thrown)
  }
}
