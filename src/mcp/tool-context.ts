import type { Artifacts } from '../artifacts/artifacts.ts'
import type { Clock } from '../base/clock.ts'
import { asGatewayError, GatewayError } from '../base/errors.ts'
import type { GuardedFetch } from '../base/guarded-fetch.ts'
import { newRequestId, type RequestId } from '../base/ids.ts'
import type { Connection } from '../base/http/connection.ts'
import { asResponse } from '../base/http/reply.ts'
import type { Log } from '../base/log.ts'
import type { WireError, WriteError } from '../capabilities/errors.ts'
import type { ModelsOnOffer } from '../catalogue/model.ts'
import { logFault } from '../edge/log-fault.ts'
import type { Route, Visit } from '../edge/route.ts'
import type { Waiting } from '../edge/waiting.ts'
import type { Line } from '../flow/run.ts'
import type { Principal } from '../keys/key-ring.ts'
import { storeError } from '../store/faults.ts'
import type { Store } from '../store/open.ts'
import { writeError } from '../wire/openai/errors.ts'
import type { Progress } from './progress.ts'

/** A row of the route table, by the name that tools use for it. */
export type RouteName = `${Route['method']} /${string}`

/** What a tool asks of a route: what a client of that path would have sent. */
export type Asking = {
  readonly id?: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly json?: object
  /** Produced when the route reads it, by which time the key is known to be valid and to have requests left. */
  readonly body?: { readonly contentType: string; readonly stream: ReadableStream<Uint8Array> }
}

/** One call of one client, and everything that a tool can do for it. */
export type ToolContext = {
  readonly principal: Principal
  readonly requestId: RequestId
  readonly signal: AbortSignal
  /** Aborts when the node is about to stop, so that no call waits for a video any longer. */
  readonly hurried: AbortSignal
  readonly progress: Progress
  readonly models: ModelsOnOffer
  readonly clock: Clock
  readonly store: Store
  /**
   * Walks a route of the public port as the caller: with the same key, limits, hold and record as over HTTP. Throws a
   * `Refused` with exactly the body that a client of the route would have received.
   */
  ask(name: RouteName, asking?: Asking): Promise<Response>
  /** Any thrown value in the form that the client may read. Our own bugs are logged. */
  refused(thrown: unknown): Refused
  /** Runs work that uses no route, or that fails before it reaches one, and counts it as a request of the key. */
  counted<T>(work: () => T | Promise<T>): Promise<T>
  /**
   * A link to a result of this call; undefined if it cannot be stored, because the client must still get the result.
   */
  keep(bytes: Uint8Array, mediaType: string): Promise<string | undefined>
  /** The file behind a client's link: a result of ours, or any public URL. */
  fetchFile(url: string): Promise<Uint8Array>
}

export type ToolContextParts = {
  /** Every path of the public port, by its name. */
  readonly routes: ReadonlyMap<string, Route>
  readonly line: Pick<Line, 'authenticate' | 'limit'>
  readonly models: () => ModelsOnOffer
  readonly artifacts: Artifacts
  /** The base of the links to stored results. */
  readonly publicUrl: string
  readonly guardedFetch: GuardedFetch
  /** Aborts when the node stops. */
  readonly stopping: AbortSignal
  readonly hurried: AbortSignal
  /**
   * Lets a stop of the node answer waiting calls: the response of a call may have begun long before its result exists.
   */
  readonly waiting: Waiting
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
}

/** An error as a client of the route would have read it. */
class Refused extends Error {
  readonly error: GatewayError
  readonly written: WireError
  readonly requestId: RequestId

  constructor(error: GatewayError, written: WireError, requestId: RequestId) {
    super(error.message)
    this.name = 'Refused'
    this.error = error
    this.written = written
    this.requestId = requestId
  }
}

/** An authenticated visit, with the caller's key. */
export type Caller = { readonly visit: Visit; readonly principal: Principal; readonly credential: string }

const fileBytesMax = 50 * 1024 * 1024

export function makeToolContext(
  parts: ToolContextParts,
  caller: Caller,
  call: Pick<ToolContext, 'signal' | 'progress'>,
): ToolContext {
  const { visit, principal, credential } = caller
  const { log } = parts
  // The first route that a tool call walks gets the request id shown in its answer. Further routes get their own ids.
  let nextId: RequestId | undefined = visit.requestId

  function refuse(thrown: unknown, requestId: RequestId, write: WriteError): Refused {
    if (thrown instanceof Refused) return thrown
    const error = asGatewayError(storeError(thrown))
    logFault(log, requestId, error)
    return new Refused(error, write(error, requestId), requestId)
  }

  async function ask(name: RouteName, asking: Asking = {}): Promise<Response> {
    const route = parts.routes.get(name)
    if (route === undefined) throw new Error(`there is no route ${name}`)
    const requestId = nextId ?? newRequestId()
    nextId = undefined
    let write = route.writeError
    const waiter = parts.waiting.enter()
    try {
      const served = route.serve({
        ...visit,
        connection: nobodys,
        requestId,
        request: requestFor(route, asking, credential, call.signal),
        path: route.path,
        id: asking.id ?? '',
        responseHeaders: { 'x-request-id': visit.requestId },
        speak(other) {
          write = other
        },
        markVendorCalled() {
          visit.markVendorCalled()
          waiter.markVendorCalled()
        },
      })
      return asResponse(await (served instanceof Promise ? waiter.for(served) : served))
    } catch (thrown) {
      throw refuse(thrown, requestId, write)
    }
  }

  return {
    ...call,
    principal,
    requestId: visit.requestId,
    hurried: parts.hurried,
    models: parts.models(),
    clock: parts.clock,
    store: parts.store,
    ask,
    refused: (thrown) => refuse(thrown, visit.requestId, writeError),

    async counted(work) {
      try {
        const { address } = visit
        const known = await parts.line.authenticate({ credential, address })
        const pass = await parts.line.limit({ principal: known, setHeader() {} })
        try {
          return await work()
        } finally {
          pass.leave(0)
        }
      } catch (thrown) {
        throw refuse(thrown, visit.requestId, writeError)
      }
    },

    async keep(bytes, mediaType) {
      try {
        return (await parts.artifacts.keep(bytes, { mediaType, accountId: principal.accountId })).url
      } catch (thrown) {
        log.warn({ request: visit.requestId, cause: String(thrown) }, 'a result was delivered but not kept')
        return undefined
      }
    },

    async fetchFile(url) {
      const kept = `${parts.publicUrl}/artifacts/`
      if (url.startsWith(kept))
        return readKept(parts.artifacts, new URL(url), url.slice(kept.length).split('?')[0] ?? '')
      const signal = AbortSignal.any([call.signal, parts.stopping])
      const { status, body } = await parts.guardedFetch.get(url, { bytesMax: fileBytesMax, signal })
      if (status === 200) return body
      throw new GatewayError('bad-request', `The URL answered ${status}.`, { code: 'invalid_url' })
    },
  }
}

export function byName(routes: readonly Route[]): ReadonlyMap<string, Route> {
  return new Map(routes.map((route) => [`${route.method} ${route.path}`, route]))
}

/** The connection of walked routes. They have no socket: the tool call itself looks after the client's. */
const nobodys: Connection = {
  address: () => '',
  headerCount: () => 0,
  follow() {},
  letGo() {},
  unreadBytes: () => Promise.resolve(undefined),
}

/** A request that was never on a socket. Only the codec and the limits of its path read it. */
function requestFor(
  { method, path }: Route,
  { id, query, json, body }: Asking,
  credential: string,
  signal: AbortSignal,
) {
  // Replaces lone surrogates, which a URL cannot encode. The route takes the task id from the visit, not from the URL.
  const named = encodeURIComponent((id ?? '').toWellFormed())
  const url = new URL(path.replace('{id}', named), 'http://tools.invalid')
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) url.searchParams.set(name, value)
  const headers = new Headers({ authorization: `Bearer ${credential}` })
  const contentType = json === undefined ? body?.contentType : 'application/json'
  if (contentType !== undefined) headers.set('content-type', contentType)
  const sent = json === undefined ? body?.stream : JSON.stringify(json)
  return new Request(url, { method, headers, signal, ...(sent !== undefined && { body: sent }) })
}

async function readKept(artifacts: Artifacts, { searchParams }: URL, id: string): Promise<Uint8Array> {
  const link = { id, expires: searchParams.get('expires'), signature: searchParams.get('signature') }
  const artifact = await artifacts.find(link)
  if (artifact.bytes > fileBytesMax) throw new GatewayError('too-large', 'The file is too large.')
  return new Uint8Array(await new Response(await artifact.read(0, artifact.bytes)).arrayBuffer())
}
