import type { Cors } from '../edge/cors.ts'
import { makeEdge, type EdgeOptions } from '../edge/edge.ts'
import type { Route } from '../edge/route.ts'
import type { Opening } from '../base/closing.ts'
import { serveHttp } from '../base/http/server.ts'
import type { Listener } from '../base/listen.ts'
import { Later } from '../base/later.ts'
import { writeDoorError } from './errors.ts'
import type { McpParts } from './mcp.ts'
import { makeOriginCheck, type OriginParts } from './origins.ts'

export type OpenMcpParts = Omit<McpParts, 'checkOrigin'> & {
  /** A port of its own. Absent: the tool server is a path of the public port. */
  readonly port: number | undefined
  /** Where the public port listens. */
  readonly at: Pick<OriginParts, 'hostname' | 'port'> & { readonly url: string }
  readonly allowed: Pick<OriginParts, 'publicUrl' | 'hosts' | 'origins'>
  readonly edge: Omit<EdgeOptions, 'routes' | 'cors'>
  readonly cors: Cors | undefined
  readonly closing: Opening<'tool port' | 'tools'>
}

export type OpenMcp = {
  readonly url: string
  /** The tool server's routes on the public port. */
  readonly publicRoutes: readonly Route[]
  /** The tool server's own port, if it has one. */
  readonly listener: Listener | undefined
}

/** Opens the tool server where the settings want it. */
export function openMcp(parts: OpenMcpParts): OpenMcp {
  const { at, allowed, port, closing } = parts
  if (port === undefined) {
    const mcp = onDemand({ ...parts, checkOrigin: makeOriginCheck({ ...at, ...allowed }) })
    closing.opened('tools', () => mcp.close())
    return { url: `${at.url}/mcp`, publicRoutes: [mcp.route], listener: undefined }
  }
  // The port's number may be known only once it is open.
  const listener = serveHttp({
    hostname: at.hostname,
    port,
    setting: 'mcp.port in turnpike.yaml',
    log: parts.edge.log,
    answer: (request, connection) => serve(request, connection),
  })
  closing.opened('tool port', () => listener.stop('at-once'))
  const checkOrigin = makeOriginCheck({ ...allowed, hostname: at.hostname, port: listener.port })
  const mcp = onDemand({ ...parts, checkOrigin })
  closing.opened('tools', () => mcp.close())
  const serve = makeEdge({ ...parts.edge, routes: [mcp.route], cors: parts.cors })
  return { url: `${listener.url}/mcp`, publicRoutes: [], listener }
}

/** The MCP library is a fifth of all code to load, so it is loaded by the first call. */
function onDemand(parts: McpParts): { readonly route: Route; close(): Promise<void> } {
  const mcp = new Later(() => import('./mcp.ts').then(({ makeMcp }) => makeMcp(parts)))
  return {
    route: {
      method: 'POST',
      path: '/mcp',
      // The address of the transport with two addresses, which clients of 2024 were told to use.
      replaces: ['/sse'],
      auth: 'key',
      writeError: writeDoorError,
      serve: async (visit) => (await mcp.get()).serve(visit),
    },
    async close() {
      const made = await mcp.ifMade()
      await made?.close()
    },
  }
}
