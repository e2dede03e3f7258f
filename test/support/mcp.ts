import { expect } from 'bun:test'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { TestGateway } from './gateway.ts'

/** Both eras of the protocol, each by its own official client. */
export const eras = ['modern', 'legacy'] as const
export type Era = (typeof eras)[number]

export type Block = {
  readonly type: string
  readonly text?: string
  readonly data?: string
  readonly mimeType?: string
  readonly uri?: string
}

export type Result = {
  readonly content: Block[]
  readonly structuredContent?: Record<string, unknown>
  readonly isError?: boolean
  readonly _meta?: Record<string, unknown>
}

export type Told = { readonly progress: number; readonly message?: string }
type CallOptions = { readonly onprogress?: (told: Told) => void; readonly signal?: AbortSignal }
type Listed = { readonly uri: string; readonly name: string }
type ListedTool = { readonly name: string } & Record<string, unknown>

/** What a test asks of a tool server, with either client. */
export type ToolClient = {
  readonly version: string | undefined
  readonly capabilities: Record<string, unknown> | undefined
  readonly instructions: string | undefined
  call(name: string, given?: Record<string, unknown>, options?: CallOptions): Promise<Result>
  tools(): Promise<ListedTool[]>
  /** The resources of all pages. */
  resources(): Promise<Listed[]>
  templates(): Promise<{ uriTemplate: string }[]>
  read(uri: string): Promise<string>
  prompts(): Promise<{ name: string; arguments?: { name: string; required?: boolean }[] }[]>
  prompt(name: string, given: Record<string, string>): Promise<string>
  complete(
    ref: { type: 'ref/resource'; uri: string } | { type: 'ref/prompt'; name: string },
    argument: { name: string; value: string },
  ): Promise<string[]>
  close(): Promise<void>
}

const clientInfo = { name: 'turnpike-tests', version: '1.0.0' }

export async function connect(
  { mcpUrl, key }: Pick<TestGateway, 'mcpUrl' | 'key'>,
  era: Era,
  given: { key?: string; fetch?: (url: string | URL, init?: RequestInit) => Promise<Response> } = {},
): Promise<ToolClient> {
  const options = {
    requestInit: { headers: { authorization: `Bearer ${given.key ?? key}` } },
    ...(given.fetch !== undefined && { fetch: given.fetch }),
  }
  const url = new URL(mcpUrl)
  if (era === 'modern') {
    const client = new ModernClient(clientInfo, { versionNegotiation: { mode: 'auto' } })
    const transport = new ModernTransport(url, options)
    await client.connect(transport)
    return wrap(
      client as unknown as Spoken,
      (name, args, more) => client.callTool({ name, arguments: args }, more as never),
      client.getNegotiatedProtocolVersion(),
    )
  }
  const client = new LegacyClient(clientInfo)
  const transport = new LegacyTransport(url, options)
  await client.connect(transport)
  return wrap(
    client as unknown as Spoken,
    (name, args, more) => client.callTool({ name, arguments: args }, undefined, more as never),
    transport.protocolVersion,
  )
}

/** The methods that both clients share. */
type Spoken = {
  getServerCapabilities(): Record<string, unknown> | undefined
  getInstructions(): string | undefined
  listTools(): Promise<{ tools: ListedTool[] }>
  listResources(params?: { cursor: string }): Promise<{ resources: Listed[]; nextCursor?: string }>
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>
  readResource(params: { uri: string }): Promise<{ contents: { text?: string }[] }>
  listPrompts(): Promise<{ prompts: { name: string }[] }>
  getPrompt(params: object): Promise<{ messages: { content: { text?: string } }[] }>
  complete(params: object): Promise<{ completion: { values: string[] } }>
  close(): Promise<void>
}

function wrap(
  client: Spoken,
  call: (name: string, given: Record<string, unknown>, options: CallOptions | undefined) => Promise<unknown>,
  version: string | undefined,
): ToolClient {
  return {
    version,
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    call: async (name, given = {}, options) => (await call(name, given, options)) as Result,
    tools: async () => (await client.listTools()).tools,
    async resources() {
      const found: Listed[] = []
      let cursor: string | undefined
      do {
        const page = await client.listResources(cursor === undefined ? undefined : { cursor })
        // The newer client gathers all pages by itself.
        found.push(...page.resources)
        cursor = page.nextCursor
      } while (cursor !== undefined)
      return found
    },
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    read: async (uri) => (await client.readResource({ uri })).contents[0]?.text ?? '',
    prompts: async () => (await client.listPrompts()).prompts,
    prompt: async (name, given) => (await client.getPrompt({ name, arguments: given })).messages[0]?.content.text ?? '',
    complete: async (ref, argument) => (await client.complete({ ref, argument })).completion.values,
    close: () => client.close(),
  }
}

/** The last text of a result: the same as its structured content, or the error. */
export function lastText({ content }: Result): unknown {
  return JSON.parse(content.findLast(({ type }) => type === 'text')?.text ?? 'null')
}

export function requestIdOf({ _meta: meta }: Result): string {
  return String(meta?.['turnpike/request_id'])
}

/** A request as a modern client sends it, for tests that send odd ones. */
export function rpc(method: string, params: Record<string, unknown> = {}, id: number | string = 0) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': clientInfo,
  }
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } }
}

export function rpcHeaders(key: string | undefined, body: ReturnType<typeof rpc>): Record<string, string> {
  const name = body.params['name' as never] ?? body.params['uri' as never]
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': body.method,
    ...(name !== undefined && { 'mcp-name': String(name) }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  }
}

/** Sends a request and returns the answer, also from an event stream. */
export async function sendRpc(
  { mcpUrl }: Pick<TestGateway, 'mcpUrl'>,
  key: string | undefined,
  body: ReturnType<typeof rpc>,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; answer: Record<string, unknown> }> {
  const response = await fetch(mcpUrl, {
    method: 'POST',
    headers: { ...rpcHeaders(key, body), ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  const last = isStream
    ? text
        .split('\n')
        .findLast((line) => line.startsWith('data: '))
        ?.slice('data: '.length)
    : text
  return {
    status: response.status,
    headers: response.headers,
    answer: JSON.parse(last || 'null') as Record<string, unknown>,
  }
}

/** The structured content of a successful result, checked to equal its text. */
export function shown<T>(result: Result): Readonly<T> {
  expect(result.isError ?? false).toBe(false)
  expect(lastText(result)).toEqual(result.structuredContent)
  return result.structuredContent as T
}
