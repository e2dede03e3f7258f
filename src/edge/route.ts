import type { RequestId } from '../base/ids.ts'
import type { Address, Connection } from '../base/http/connection.ts'
import type { HttpResponse } from '../base/http/reply.ts'
import type { HttpRequest } from '../base/http/request.ts'
import type { WriteError } from '../capabilities/errors.ts'

/** One request as the edge sees it, before the first stage of the flow. */
export type Visit = {
  readonly request: HttpRequest
  readonly requestId: RequestId
  readonly connection: Connection
  /** The client's address; a forwarding header counts only behind a trusted proxy. */
  readonly address: Address
  readonly path: string
  /** Headers of the response, whether it succeeds or fails: the request id, and what the stages add. */
  readonly responseHeaders: Record<string, string>
  /** Sets how errors of this request are written from now on, for paths that serve clients of several protocols. */
  speak(writeError: WriteError): void
  /** Call before a vendor is called for the request: the code that calls it then also answers when the node stops. */
  readonly markVendorCalled: () => void
  /** The `{id}` of the path, decoded; '' where the path has none. */
  readonly id: string
}

/**
 * One line of the route table. `auth` has no default: a route that does not say who may call it does not compile, and a
 * test calls every route with and without a key.
 */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly auth: 'key' | 'admin' | 'open'
  readonly writeError: WriteError
  /** Unknown paths below this one write errors as it does, because a client that tries one speaks the same protocol. */
  readonly speaksBelow?: true
  /** How the paths end that this one has replaced in its protocol: older clients that call one are told of this one. */
  readonly replaces?: readonly string[]
  readonly serve: (visit: Visit) => Promise<HttpResponse> | HttpResponse
}
