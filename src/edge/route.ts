import type { RequestId } from '../base/ids.ts'
import type { Address, Connection } from '../base/listen.ts'
import type { WriteError } from '../capabilities/errors.ts'

/** One request as the edge has it, before any stage of the line. */
export type Visit = {
  readonly request: Request
  readonly requestId: RequestId
  readonly connection: Connection
  /** The client's address, a forwarding header believed only behind a trusted proxy. */
  readonly address: Address
  readonly path: string
  /** What is to be in the head of the answer, whichever answer it becomes: the request's id, and what stages say. */
  readonly said: Record<string, string>
  /** From here on, errors of this visit look like this: for paths on which clients of several protocols meet. */
  speak(writeError: WriteError): void
  /** To be called before something is bought for it: from then on, whoever buys also answers it when the node stops. */
  readonly inHands: () => void
  /** The `{id}` of the path, decoded; '' where the path has none. */
  readonly id: string
}

/**
 * One line of the route table. `auth` has no default: a route that does not say who may call it does not compile, and a
 * test walks the table with and without a key.
 */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly auth: 'key' | 'admin' | 'open'
  readonly writeError: WriteError
  /** Unknown paths below this one show errors as it does: whoever tries one is a client of the same protocol. */
  readonly speaksBelow?: true
  readonly serve: (visit: Visit) => Promise<Response> | Response
}
