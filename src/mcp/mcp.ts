import type { HttpRequest } from '../base/http/request.ts'
import { createMcpHandler, isLegacyRequest, specTypeSchemas, type McpHttpHandler } from '@modelcontextprotocol/server'
import { badRequest } from '../base/errors.ts'
import { writeFieldPath } from '../base/field-path.ts'
import { abortSignalOf } from '../base/http/client-signal.ts'
import { isObject, withoutNull, type JsonLimits, type JsonObject } from '../base/json.ts'
import type { Mac } from '../base/secret.ts'
import { bearerOf } from '../edge/credential.ts'
import { readJsonBody } from '../edge/read-body.ts'
import type { Route, Visit } from '../edge/route.ts'
import type { Limiter } from '../limits/limiter.ts'
import { byName, type Caller } from './tool-context.ts'
import { inOlderCodes, writeRpcError } from './errors.ts'
import { makeServers, type ServerParts } from './server.ts'
import { makeSessions, type Answering } from './sessions.ts'

export type McpParts = Omit<ServerParts, 'routes'> & {
  readonly routes: readonly Route[]
  /** Throws if the Host or the Origin of a request is not allowed. */
  readonly checkOrigin: (request: HttpRequest) => void
  /** Clients request lists, pages and completions by the dozen, so these are counted apart from paid calls. */
  readonly limiter: Limiter
  readonly sessionMac: Mac
  readonly bodyBytesMax: number
  readonly json: JsonLimits
}

export type Mcp = { serve(visit: Visit): Promise<Response>; close(): Promise<void> }

/** The tool server: every capability as a tool, on one path, one request at a time. */
export function makeMcp(parts: McpParts): Mcp {
  const serverFor = makeServers({ ...parts, routes: byName(parts.routes) })
  const sessions = makeSessions(parts.sessionMac)
  // The caller of each request: the library hands on the request but nothing else of ours.
  const callers = new WeakMap<Request, Caller>()
  const handlerWith = (responseMode: 'auto' | 'sse') =>
    createMcpHandler(
      ({ requestInfo }) => {
        const caller = requestInfo === undefined ? undefined : callers.get(requestInfo)
        if (caller === undefined) throw new Error('a request of the tool server has no caller')
        return serverFor(caller)
      },
      { responseMode },
    )
  // A tool call may last for minutes, so it is answered as a stream, which shows that the call is alive.
  const [plain, streaming] = [handlerWith('auto'), handlerWith('sse')]

  async function serve(visit: Visit): Promise<Response> {
    const { request } = visit
    parts.checkOrigin(request)
    const credential = bearerOf(request)
    const principal = await parts.line.authenticate({ credential, address: visit.address })
    visit.speak(writeRpcError(null))
    const body = withoutNulls((await readJsonBody(request, parts.bodyBytesMax, parts.json)).body)
    visit.speak(writeRpcError(idOf(body)))
    const caller = { visit, principal, credential: credential ?? '' }
    if (body['method'] === 'tools/call') return dispatch(streaming, body, caller)
    const pass = await parts.limiter.enter(principal.keyId, principal.limits, (header, value) => {
      visit.responseHeaders[header] = value
    })
    try {
      return await dispatch(plain, body, caller)
    } finally {
      pass.leave(0)
    }
  }

  async function dispatch(handler: McpHttpHandler, body: JsonObject, caller: Caller): Promise<Response> {
    const { request, responseHeaders } = caller.visit
    const ours = abortSignalOf(request.signal)
    const headers = acceptingBoth(new Headers([...request.headers]))
    const answer = async (signal: AbortSignal) => {
      const inner = new Request(request.url, { method: 'POST', headers, signal })
      callers.set(inner, caller)
      const response = await handler.fetch(inner, { parsedBody: body })
      for (const [header, value] of Object.entries(responseHeaders)) response.headers.set(header, value)
      return response
    }
    const isOlder = await isLegacyRequest(new Request(request.url, { method: 'POST', headers }), body)
    return isOlder ? answerOlder(body, caller, ours, answer) : answer(ours)
  }

  /** Older clients begin with a handshake, cancel within the session that it gave them, and know other error codes. */
  async function answerOlder(
    body: JsonObject,
    { visit, principal }: Caller,
    signal: AbortSignal,
    answer: Answering,
  ): Promise<Response> {
    const { headers } = visit.request
    const { method } = body
    const id = idOf(body)
    if (method === 'initialize' && id !== null) checkInitialize(body)
    const session = headers.get('mcp-session-id')
    if (session !== null) sessions.check(session, principal.keyId)
    if (session !== null && method === 'notifications/cancelled') sessions.cancel(session, cancelledIn(body))
    const inOlderForm: Answering = async (until) => {
      const response = await answer(until)
      if (method === 'initialize' && response.ok) {
        response.headers.set('mcp-session-id', sessions.open(principal.keyId, revisionIn(body)))
      }
      return method === 'resources/read' ? inOlderCodes(response) : response
    }
    return session === null || id === null ? inOlderForm(signal) : sessions.follow(session, id, signal, inOlderForm)
  }

  return {
    serve,
    async close() {
      await Promise.all([plain.close(), streaming.close()])
    },
  }
}

/**
 * Some clients write null for `params`, `arguments` or a `cursor` that they do not have, and the library refuses it.
 */
function withoutNulls(body: JsonObject): JsonObject {
  const { params, ...rest } = body
  if (params === null) return rest
  return isObject(params) ? { ...rest, params: withoutNull(params) } : body
}

/** The library wants both types to be named. A client that names none, or only streams, can read what we send too. */
function acceptingBoth(given: Headers): Headers {
  const accepted = given.get('accept') ?? '*/*'
  if (!/\*\/\*|text\/(?:event-stream|\*)/i.test(accepted)) return given
  given.set('accept', 'application/json, text/event-stream')
  return given
}

/**
 * Without this check the library reports a malformed `initialize` as a failure of the server, and a session is opened.
 */
function checkInitialize(body: JsonObject): void {
  const [issue] = specTypeSchemas.InitializeRequest['~standard'].validate(body).issues ?? []
  if (issue === undefined) return
  const path = (issue.path ?? []).map((part) => (typeof part === 'object' ? part.key : part))
  const param = writeFieldPath(path)
  throw badRequest(`Invalid params for initialize: ${param}: ${issue.message}`, param, 'invalid_params')
}

/** The revision that a client asks for. One that names none is taken for the oldest. */
function revisionIn({ params }: JsonObject): string {
  const revision = isObject(params) ? params['protocolVersion'] : undefined
  return typeof revision === 'string' ? revision : ''
}

function idOf({ id }: JsonObject): string | number | null {
  return typeof id === 'string' || typeof id === 'number' ? id : null
}

/** The id of the request that a cancellation means. */
function cancelledIn({ params }: JsonObject): string | number {
  return (isObject(params) ? idOf({ id: params['requestId'] }) : null) ?? ''
}
