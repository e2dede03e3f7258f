import { explainListening, urlOf, type Listener, type Place } from '../base/listen.ts'

export type ListenOptions = Place & {
  readonly bodyBytesMax: number
  /** `holdOpen`: from then on a quiet answer is not cut off. */
  readonly fetch: (request: Request, holdOpen: () => void) => Promise<Response>
}

// The runtime's default of 10 s would cut quiet streams.
const idleSeconds = 65

/** The simulators' port is the runtime's server, and not the gateway's own, so that the two share no mistake. */
export function listen(options: ListenOptions): Listener {
  const server = open(options)
  const port = server.port ?? options.port
  return {
    port,
    url: urlOf(options.hostname, port),
    get underway() {
      return server.pendingRequests
    },
    stop: (how) => server.stop(how === 'at-once'),
  }
}

function open(options: ListenOptions) {
  try {
    return Bun.serve({
      hostname: options.hostname,
      port: options.port,
      maxRequestBodySize: options.bodyBytesMax,
      idleTimeout: idleSeconds,
      development: false,
      // Without this, Bun shares the port with a process that has it already, and requests go to either at random.
      reusePort: false,
      fetch: (request, server) => options.fetch(request, () => server.timeout(request, 0)),
      error: () => new Response(null, { status: 500 }),
    })
  } catch (thrown) {
    throw new Error(explainListening(options, thrown), { cause: thrown })
  }
}
