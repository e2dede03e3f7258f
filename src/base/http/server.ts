import type { Socket } from 'bun'
import { systemClock } from '../clock.ts'
import { Deadlines } from '../deadlines.ts'
import { Gathering } from '../gathering.ts'
import { IntrusiveSet } from '../intrusive-set.ts'
import { explainListening, urlOf, type Listener, type Place } from '../listen.ts'
import type { Log } from '../log.ts'
import { makeSocketTable } from '../socket-table.ts'
import { codeOf } from '../system-errors.ts'
import { ClientConnection } from './client-connection.ts'
import type { Answering, Serving } from './serving.ts'

export type ServerOptions = Place & {
  readonly answer: Answering
  readonly log: Pick<Log, 'error'>
  /** How long a connection may stay without a byte, unless a request is being worked on, before it is closed. */
  readonly idleSeconds?: number
}

// Longer than most clients keep an idle connection, so that it is not closed while their next request is on its way.
const idleSecondsDefault = 65
const tickMs = 1_000

/** Our own HTTP/1.1 server, for every port that sells or operates something. docs/decisions/0017 explains why. */
export function serveHttp(options: ServerOptions): Listener {
  const { idleSeconds = idleSecondsDefault } = options
  const stopped: (() => void)[] = []
  const serving: Serving = {
    answer: options.answer,
    arrivals: new Gathering(),
    connections: new IntrusiveSet(),
    watching: { deadlines: new Deadlines(systemClock), clock: systemClock, idleSeconds },
    sockets: makeSocketTable(systemClock),
    underway: 0,
    isStopping: false,
    mistaken(thrown) {
      options.log.error({ cause: thrown instanceof Error ? thrown.stack : String(thrown) }, 'a bug behind a port')
    },
    closed() {
      if (serving.isStopping && serving.connections.size === 0) for (const tell of stopped.splice(0)) tell()
    },
  }
  const listener = open(options, serving)
  const ticks = setInterval(() => {
    for (const connection of serving.connections) connection.tick()
  }, tickMs)
  ticks.unref()
  return {
    port: listener.port,
    url: urlOf(options.hostname, listener.port),
    get underway() {
      return serving.underway
    },
    async stop(how) {
      listener.stop(false)
      serving.isStopping = true
      for (const connection of serving.connections) {
        if (how === 'gently') connection.stop()
        else connection.terminate()
      }
      if (serving.connections.size > 0) await new Promise<void>((resolve) => stopped.push(resolve))
      clearInterval(ticks)
    },
  }
}

function open(options: ServerOptions, serving: Serving) {
  try {
    return Bun.listen<ClientConnection>({
      hostname: options.hostname,
      port: options.port,
      // Otherwise Bun may share the port with a process that has it already.
      exclusive: true,
      socket: {
        binaryType: 'uint8array',
        open(socket: Socket<ClientConnection>) {
          socket.data = new ClientConnection(serving, socket)
        },
        data: (socket, bytes) => socket.data.received(bytes),
        drain: (socket) => socket.data.drained(),
        close: (socket) => socket.data.closed(),
        // Also called with what the code behind these has thrown, which the runtime reports nowhere else.
        error(socket, error) {
          if (codeOf(error) === undefined) serving.mistaken(error)
          socket.data.terminate()
        },
      },
    })
  } catch (thrown) {
    throw new Error(explainListening(options, thrown), { cause: thrown })
  }
}
