import type { Server } from 'bun'

/** Asked for only where it is needed: finding it out takes 15 µs, a tenth of a request. */
export type Address = () => string

/** What the listener knows of one request beyond the request itself. */
export type Connection = {
  /** The peer's address as the socket has it; forwarding headers are read elsewhere, and only behind a trusted proxy. */
  readonly address: Address
  /** How many headers the request has, by name. */
  readonly headerCount: () => number
  /** Call once the body is complete: from then on our own timers guard the exchange, and a quiet stream is not cut. */
  holdOpen(): void
  /** Call before the last of an answer is handed over: nobody of ours watches what its reader does with it from then on. */
  letGo(): void
}

export type Listener = {
  readonly port: number
  readonly url: string
  /** Requests that are not answered to their end. */
  readonly underway: number
  /** Stops accepting; resolves when requests in flight are done, or at once with `force`. */
  stop(force?: boolean): Promise<void>
}

export type ListenOptions = {
  hostname: string
  port: number
  /** Where the operator chose the port, and chooses another when this one is taken. */
  setting: string
  bodyBytesMax: number
  fetch(request: Request, connection: Connection): Response | Promise<Response>
}

// With 0, half-sent bodies and idle sockets would stay open for ever; Bun's own default of 10 s cuts quiet streams.
const idleSeconds = 65

// The longest that Bun takes. What lies in the system's buffers has to be read before anything moves.
const unreadSecondsMax = 255

/** The one place that opens a port: Bun's server behind an interface another runtime could fill. */
export function listen(options: ListenOptions): Listener {
  const server = serve(options)
  const port = server.port ?? options.port
  const host = options.hostname.includes(':') ? `[${options.hostname}]` : options.hostname
  return {
    port,
    url: `http://${host}:${port}`,
    get underway() {
      return server.pendingRequests
    },
    stop: (force = false) => server.stop(force),
  }
}

function serve(options: ListenOptions): Server<undefined> {
  try {
    return begin(options)
  } catch (thrown) {
    throw new Error(explain(options, thrown), { cause: thrown })
  }
}

function explain({ hostname, port, setting }: ListenOptions, thrown: unknown): string {
  const isInUse = thrown instanceof Error && 'code' in thrown && thrown.code === 'EADDRINUSE'
  if (isInUse) return `port ${port} of ${hostname} is in use: give another as ${setting}, or 0 for a free one`
  const why = thrown instanceof Error ? thrown.message : String(thrown)
  return `port ${port} of ${hostname} (${setting}) cannot be opened: ${why}`
}

function begin(options: ListenOptions): Server<undefined> {
  return Bun.serve({
    hostname: options.hostname,
    port: options.port,
    maxRequestBodySize: options.bodyBytesMax,
    idleTimeout: idleSeconds,
    development: false,
    // Without this, Bun shares the port with whoever has it already, and requests go to either at random.
    reusePort: false,
    fetch: (request, server) =>
      options.fetch(request, {
        address: () => server.requestIP(request)?.address ?? '',
        // Bun counts them anyway; its types do not say so.
        headerCount: () => (request.headers as Headers & { readonly count: number }).count,
        holdOpen: () => server.timeout(request, 0),
        letGo: () => server.timeout(request, unreadSecondsMax),
      }),
    error: () => new Response(null, { status: 500 }),
  })
}
