import { excerpt } from '../../base/errors.ts'
import { isGiven, type JsonObject } from '../../base/json.ts'
import type { HostedTool, Tool, ToolChoice } from '../../capabilities/conversation.ts'
import { invalid, listValues } from '../issues.ts'
import { noParameters } from '../openai/strict-schema.ts'
import { shortName } from '../short-name.ts'
import type { ResponsesRequest, WrittenTool } from './schema.ts'

type OwnTool = Extract<WrittenTool, { type: 'function' | 'custom' }>
type ToolSearch = Extract<WrittenTool, { type: 'tool_search' }>
type WebSearch = Exclude<WrittenTool, OwnTool | ToolSearch | { type: 'namespace' }>

/** A tool that the client runs: as any vendor knows it, and as the client knows it. */
export type OfferedTool = { readonly tool: Tool; readonly called: ClientTool }

/** How this protocol names a call of the tool. A `custom` tool takes plain text. */
export type ClientTool = {
  readonly kind: 'function' | 'custom' | 'tool-search'
  readonly name: string
  readonly namespace?: string
}

/** Vendors know tool search as an ordinary tool with this name. */
export const toolSearchName = 'tool_search'

type Placed = { readonly tool: WrittenTool; readonly at: string; readonly isLater: boolean }

/** The tools of a request: those in `tools`, and those added in the middle of the conversation. */
export function placedTools({ tools, input }: ResponsesRequest): Placed[] {
  const placed: Placed[] = (tools ?? []).map((tool, index) => ({ tool, at: `tools[${index}]`, isLater: false }))
  if (typeof input === 'string') return placed
  for (const [index, item] of input.entries()) {
    if (item.type !== 'additional_tools' && item.type !== 'tool_search_output') continue
    for (const [at, tool] of item.tools.entries()) {
      placed.push({ tool, at: `input[${index}].tools[${at}]`, isLater: true })
    }
  }
  return placed
}

export function isWebSearch(tool: WrittenTool): tool is WebSearch {
  return isSearchType(tool.type)
}

export function isSearchType(type: string): boolean {
  return type.startsWith('web_search')
}

/**
 * The web searches that a request asks for, and where. A search restricted to the vendor's own index is not one:
 * other vendors have no such index, so the tool is not offered and the answer does not repeat it. The command-line tool
 * of the protocol's own vendor asks for it by default.
 */
export function webSearches(request: ResponsesRequest): { readonly tool: WebSearch; readonly at: string }[] {
  const few = allowedTools(request)
  if (few !== undefined && !few.some(({ type }) => isSearchType(type))) return []
  return placedTools(request).flatMap(({ tool, at }) => {
    return isWebSearch(tool) && tool.external_web_access !== false ? [{ tool, at }] : []
  })
}

/** The only tools that may be called, where the request restricts them. */
function allowedTools({ tool_choice: choice }: ResponsesRequest) {
  return isGiven(choice) && typeof choice === 'object' && choice.type === 'allowed_tools' ? choice.tools : undefined
}

/** Only one vendor knows namespaces; for the others the namespace is put before the tool's name. */
export function neutralName({ name, namespace }: { name: string; namespace?: string | null | undefined }): string {
  return shortName(isGiven(namespace) && namespace !== '' ? `${namespace}__${name}` : name)
}

/** The tools that the client runs, by the names under which vendors know them, without those that are not allowed. */
export function offeredTools(request: ResponsesRequest): ReadonlyMap<string, OfferedTool> {
  const offered = new Map<string, OfferedTool>()
  for (const { tool, at, isLater } of placedTools(request)) {
    if (isWebSearch(tool)) continue
    if (tool.type === 'tool_search') {
      const called = { kind: 'tool-search', name: toolSearchName } as const
      offered.set(toolSearchName, { tool: readTool(tool, toolSearchName), called })
      continue
    }
    for (const { own, namespace, param } of ownTools(tool, at)) {
      const name = neutralName({ name: own.name, namespace })
      // Tool search may find the same tool again.
      if (offered.has(name) && !isLater) throw invalid(param, `there are two tools '${name}'`)
      const called = { kind: own.type, name: own.name, ...(namespace !== undefined && { namespace }) }
      offered.set(name, { tool: readTool(own, name), called })
    }
  }
  return allowed(offered, request)
}

function ownTools(tool: OwnTool | Extract<WrittenTool, { type: 'namespace' }>, at: string) {
  if (tool.type !== 'namespace') return [{ own: tool, namespace: undefined, param: `${at}.name` }]
  return tool.tools.map((own, index) => ({ own, namespace: tool.name, param: `${at}.tools[${index}].name` }))
}

/** The names of some tools, as vendors know them. */
export function namesOf(tools: readonly WrittenTool[]): string[] {
  return tools.flatMap((tool) => {
    if (isWebSearch(tool) || tool.type === 'tool_search') return []
    return ownTools(tool, '').map(({ own, namespace }) => neutralName({ name: own.name, namespace }))
  })
}

function allowed(
  offered: ReadonlyMap<string, OfferedTool>,
  request: ResponsesRequest,
): ReadonlyMap<string, OfferedTool> {
  const few = allowedTools(request)
  if (few === undefined) return offered
  if (few.length === 0) throw invalid('tool_choice.tools', 'it names no tool')
  const find = finderIn(offered)
  const hasSearch = placedTools(request).some(({ tool }) => isWebSearch(tool))
  const names = new Set<string>()
  for (const [index, named] of few.entries()) {
    const at = `tool_choice.tools[${index}]`
    if (!isSearchType(named.type)) names.add(find(named, at).tool.name)
    else if (!hasSearch) throw invalid(`${at}.type`, `'${excerpt(named.type)}' is not among the tools`)
  }
  return new Map([...offered].filter(([name]) => names.has(name)))
}

type Named = {
  readonly type: string
  readonly name?: string | null | undefined
  readonly namespace?: string | null | undefined
}

const kinds: Readonly<Record<string, ClientTool['kind']>> = {
  function: 'function',
  custom: 'custom',
  tool_search: 'tool-search',
}

/**
 * Finds the tool that a choice names. A bare name means the tool outside of all namespaces, or the only one with that
 * name. There may be a hundred thousand tools and names, so no name is compared with every tool.
 */
function finderIn(offered: ReadonlyMap<string, OfferedTool>): (named: Named, at: string) => OfferedTool {
  const alike = Map.groupBy(offered.values(), ({ called }) => `${called.kind} ${called.name}`)
  return (named, at) => {
    const { type, namespace } = named
    const name = named.name ?? type
    const isBare = !isGiven(namespace) || namespace === ''
    const exact = offered.get(neutralName({ name, namespace }))
    if (exact !== undefined && isCalled(exact.called, kinds[type], isBare ? undefined : namespace)) return exact
    const [only, ...others] = isBare ? (alike.get(`${kinds[type]} ${name}`) ?? []) : []
    const param = `${at}.name`
    if (only === undefined) {
      const where = isBare ? '' : ` in the namespace '${excerpt(namespace)}'`
      throw invalid(param, `'${excerpt(name)}' is not among the tools of type '${excerpt(type)}'${where}`)
    }
    if (others.length === 0) return only
    const spaces = listValues([only, ...others].flatMap(({ called }) => called.namespace ?? []))
    throw invalid(param, `'${excerpt(name)}' is in the namespaces ${spaces}. Send its 'namespace' too`)
  }
}

/** The neutral name `a__b` may be tool `b` of namespace `a`, or a tool that is itself called `a__b`. */
function isCalled(called: ClientTool, kind: ClientTool['kind'] | undefined, namespace: string | undefined): boolean {
  return called.kind === kind && called.namespace === namespace
}

function readTool(tool: OwnTool | ToolSearch, name: string): Tool {
  const { description } = tool
  if (tool.type === 'custom') return { name, description: describe(tool), schema: plainInput, isStrict: true }
  const isStrict = 'strict' in tool && isGiven(tool.strict) ? tool.strict === true : undefined
  return {
    name,
    ...(isGiven(description) && { description }),
    schema: isGiven(tool.parameters) ? (tool.parameters as JsonObject) : noParameters(isStrict),
    ...(isStrict !== undefined && { isStrict }),
  }
}

/** The schema of a tool that takes plain text, for vendors whose tools take objects. */
const plainInput = {
  type: 'object',
  properties: { input: { type: 'string', description: 'All of the input, as plain text.' } },
  required: ['input'],
  additionalProperties: false,
}

/** The grammar is described to the model; no vendor enforces it. */
function describe({ description, format }: Extract<OwnTool, { type: 'custom' }>): string {
  const said = isGiven(description) ? [description] : []
  if (format?.type === 'grammar')
    said.push(`The input must follow this ${format.syntax} grammar:\n${format.definition}`)
  return said.join('\n\n')
}

export function writePlainInput(input: string): string {
  return JSON.stringify({ input })
}

export function hostedTools(request: ResponsesRequest, searchesMax: number): readonly HostedTool[] {
  return searchesMax > 0 && webSearches(request).length > 0 ? [{ kind: 'web-search', usesMax: searchesMax }] : []
}

export function readToolChoice(
  { tool_choice: choice }: ResponsesRequest,
  offered: ReadonlyMap<string, OfferedTool>,
): ToolChoice | undefined {
  if (!isGiven(choice) || typeof choice === 'string') return choice ?? undefined
  if (choice.type === 'allowed_tools') return choice.mode
  return { name: finderIn(offered)(choice, 'tool_choice').tool.name }
}
