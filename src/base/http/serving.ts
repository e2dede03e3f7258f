import type { Clock } from '../clock.ts'
import type { Deadlines } from '../deadlines.ts'
import type { Gathering } from '../gathering.ts'
import type { IntrusiveSet } from '../intrusive-set.ts'
import type { SocketTable } from '../socket-table.ts'
import type { ClientConnection } from './client-connection.ts'
import type { Connection } from './connection.ts'
import type { HttpResponse } from './reply.ts'
import type { HttpRequest } from './request.ts'

/** Answers a request. It throws, or rejects, only by mistake. */
export type Answering = (request: HttpRequest, connection: Connection) => HttpResponse | Promise<HttpResponse>

/** What the connections of one server share. */
export type Serving = {
  readonly answer: Answering
  readonly arrivals: Gathering
  readonly connections: IntrusiveSet<ClientConnection>
  readonly watching: {
    readonly deadlines: Deadlines
    readonly clock: Pick<Clock, 'monotonic'>
    readonly idleSeconds: number
  }
  readonly sockets: SocketTable
  /** Requests whose response is not finished. */
  underway: number
  /** Every response closes its connection. */
  isStopping: boolean
  /** Called with what was thrown by mistake, which no client is told. */
  mistaken(thrown: unknown): void
  /** Called when a connection is gone. */
  closed(): void
}
