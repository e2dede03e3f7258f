import {
  ProtocolError,
  Server,
  type AudioContent,
  type CallToolResult,
  type EmbeddedResource,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Timers } from '../base/clock.ts'
import { complete } from './completion.ts'
import { errorObject } from '../wire/openai/errors.ts'
import { makeToolContext, type Caller, type ToolContext, type ToolContextParts } from './tool-context.ts'
import { invalidParams, rpcCodeOf } from './errors.ts'
import { makeProgress, type SendProgress } from './progress.ts'
import { getPrompt, listPrompts } from './prompts.ts'
import { listResources, readResource, templates } from './resources.ts'
import { readsAudio } from './sessions.ts'
import { callTool, describe } from './tool.ts'
import { tools } from './tools/index.ts'

export type ServerParts = ToolContextParts & {
  readonly version: string
  readonly timers: Timers
}

const instructions = [
  'Turnpike sells many vendors’ models behind one key: chat, images, video, embeddings and speech, each call paid for from',
  'the key’s account. Call `list_models` before you choose a model: ids and prices change. Videos are tasks: start one with',
  '`generate_video`, look at it with `get_video`. An error says what was wrong and which argument; `get_usage` says what was',
  'spent. Reference pages are resources under turnpike://api, a page for each model under turnpike://models/{id}.',
].join(' ')

// What changes only with a new version may be cached for minutes and shared; what depends on the key is private.
const steady = { ttlMs: 300_000, cacheScope: 'public' } as const
const own = { ttlMs: 60_000, cacheScope: 'private' } as const
const fresh = { ttlMs: 0, cacheScope: 'private' } as const
const cacheHints = {
  'server/discover': steady,
  'tools/list': steady,
  'prompts/list': steady,
  'resources/templates/list': steady,
  'resources/list': own,
  'resources/read': fresh,
}

/**
 * The schemas of what clients send. With them the library names what is malformed; without them it reports a failure of
 * the server and shows notes from its own schema.
 */
const written = {
  list: { params: z.looseObject({ cursor: z.string().optional() }) },
  resource: { params: z.looseObject({ uri: z.string() }) },
  prompt: { params: z.looseObject({ name: z.string(), arguments: z.record(z.string(), z.string()).optional() }) },
  completion: {
    params: z.looseObject({
      ref: z.discriminatedUnion('type', [
        z.looseObject({ type: z.literal('ref/prompt'), name: z.string() }),
        z.looseObject({ type: z.literal('ref/resource'), uri: z.string() }),
      ]),
      argument: z.looseObject({ name: z.string(), value: z.string() }),
    }),
  },
}

// Revisions are named by their dates.
const linksSince = '2025-06-18'

// A result may hold an image. Its size is not known here, so it counts as one that takes the client a while to read.
const resultBytesMax = 64 * 1024 * 1024

/** Makes a server for each request of each caller, so that callers share nothing. */
export function makeServers(parts: ServerParts): (caller: Caller) => Server {
  // A tool is offered only if all the paths it uses exist.
  const offered = tools.filter(({ routes }) => routes.every((route) => parts.routes.has(route)))
  const listed = offered.map(describe)

  return (caller) => {
    const server = new Server(
      { name: 'turnpike', title: 'Turnpike', version: parts.version },
      // The server pushes nothing, so it announces no change notifications.
      { capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} }, instructions, cacheHints },
    )
    const toolContextOf = (context: ServerContext) => {
      const progress = makeProgress(progressOf(context), parts)
      return makeToolContext(parts, caller, { signal: context.mcpReq.signal, progress })
    }

    const withToolContext = async <T>(
      context: ServerContext,
      work: (toolContext: ToolContext) => Promise<T>,
    ): Promise<T> => {
      const toolContext = toolContextOf(context)
      return work(toolContext).catch((thrown: unknown) => {
        throw explain(thrown, toolContext)
      })
    }

    server.setRequestHandler('tools/list', written.list, () => ({ tools: listed }))
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const tool = offered.find(({ name }) => name === params.name)
      if (tool === undefined) throw new ProtocolError(invalidParams, `Unknown tool: ${params.name}`)
      const { connection } = caller.visit
      // The response's stream may have been handed over already, and stays quiet while the tool works.
      connection.follow()
      try {
        return forRevisionOf(caller, await callTool(tool, params.arguments ?? {}, toolContextOf(context)))
      } finally {
        connection.letGo(resultBytesMax)
      }
    })
    server.setRequestHandler('resources/list', written.list, ({ cursor }, context) =>
      withToolContext(context, (toolContext) => listResources(toolContext, cursor)),
    )
    server.setRequestHandler('resources/templates/list', written.list, () => ({
      resourceTemplates: [...templates],
    }))
    server.setRequestHandler('resources/read', written.resource, ({ uri }, context) =>
      withToolContext(context, async (toolContext) => ({ contents: [await readResource(toolContext, uri)] })),
    )
    server.setRequestHandler('prompts/list', written.list, () => ({ prompts: listPrompts() }))
    server.setRequestHandler('prompts/get', written.prompt, (params) => getPrompt(params.name, params.arguments ?? {}))
    server.setRequestHandler('completion/complete', written.completion, (params, context) =>
      withToolContext(context, (toolContext) => complete(params, toolContext)),
    )
    return server
  }
}

/**
 * Clients of earlier revisions refuse a whole result that has a link as a block; its text has the same link. They send
 * no header with their revision. Those of the first revision also refuse audio, and get it as a file.
 */
function forRevisionOf({ visit }: Caller, result: CallToolResult): CallToolResult {
  const { headers } = visit.request
  const revision = headers.get('mcp-protocol-version')
  if (revision !== null && revision >= linksSince) return result
  const content = result.content.filter(({ type }) => type !== 'resource_link')
  if (readsAudio(headers.get('mcp-session-id'))) return { ...result, content }
  const [url] = result.content.flatMap((block) => (block.type === 'resource_link' ? [block.uri] : []))
  return { ...result, content: content.map((block) => (block.type === 'audio' ? asFile(block, url) : block)) }
}

/** A file needs an address. One that could not be kept has none that leads anywhere. */
function asFile({ data, mimeType }: AudioContent, uri = 'turnpike://speech'): EmbeddedResource {
  return { type: 'resource', resource: { uri, mimeType, blob: data } }
}

/** Errors in the wording of every other path; the library would show a client any error's own message. */
function explain(thrown: unknown, toolContext: ToolContext): ProtocolError {
  if (thrown instanceof ProtocolError) return thrown
  const { error } = toolContext.refused(thrown)
  const { message, ...about } = errorObject(error)
  return new ProtocolError(rpcCodeOf(error), message, about)
}

/** Progress is sent only to a client that gave a token. */
function progressOf({ mcpReq }: ServerContext): SendProgress | undefined {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return undefined
  return (progress, message) => {
    const params = { progressToken, progress, ...(message !== undefined && { message }) }
    // A client that has left needs no progress.
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
  }
}
