import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { openaiReasoning } from '../../capabilities/conversation.ts'
import { objectIn, objectsIn, textIn } from '../loose.ts'
import { labels } from '../openai/pass-ask.ts'
import { writeCallId } from '../openai/write-messages.ts'
import { requestOf } from './read-conversation.ts'
import { isMislabelled } from './read-items.ts'
import type { Item, ResponsesRequest, WrittenTool } from './schema.ts'
import { unseal } from './sealed.ts'
import { isSearchType, isWebSearch, placedTools, webSearches } from './tools.ts'
import { label, type ResponsesTarget } from './write-ask.ts'

/** Tools and items that only newer models take as written; for other models the request is translated. */
const newerTools: ReadonlySet<WrittenTool['type']> = new Set(['namespace', 'tool_search'])
const newerItems: ReadonlySet<Item['type']> = new Set([
  'additional_tools',
  'agent_message',
  'tool_search_call',
  'tool_search_output',
])

/** Whether the vendor can read the request as the client wrote it. `findsTools`: the model knows tool search. */
export function isNative(ask: ChatAsk, findsTools: boolean): boolean {
  const request = requestOf(ask)
  const items = itemsOf(request)
  // An image that another vendor's model made cannot be written for this one; translation leaves it out.
  if (items.some(({ type }) => type === 'image_generation_call')) return false
  if (items.some((item) => item.type === 'agent_message' && isMislabelled(item))) return false
  if (findsTools) return true
  if (placedTools(request).some(({ tool }) => newerTools.has(tool.type))) return false
  return !items.some((item) => newerItems.has(item.type) || ('namespace' in item && isGiven(item.namespace)))
}

function itemsOf({ input }: ResponsesRequest): readonly Item[] {
  return typeof input === 'string' ? [] : input
}

const likelihoods = 'message.output_text.logprobs'

/** The vendor's body: the client's own, except for values that are not the client's to choose. Unknown fields stay. */
export function passAsk(ask: ChatAsk, target: ResponsesTarget): string {
  const request = requestOf(ask)
  const { native, searchesMax } = ask
  const unoffered = unofferedTools(request)
  const offered = withoutTools(native, unoffered)
  const body: Record<string, Json | undefined> = { ...offered, model: target.upstreamModel, store: false }
  // Reasoning models refuse a temperature, which can only be the default here, and logprobs, of which they have none.
  delete body['temperature']
  if (target.hidesReasoning === true) {
    const { summary: _shown, generate_summary: _older, ...reasoning } = objectIn(native['reasoning'])
    body['reasoning'] = reasoning
  }
  if (isObject(native['prompt_cache_options']))
    body['prompt_cache_options'] = uncompared(native['prompt_cache_options'])
  if (Array.isArray(native['include']))
    body['include'] = native['include'].filter((shown: Json) => shown !== likelihoods)
  for (const name of labels) {
    const given = native[name]
    if (typeof given === 'string') body[name] = label(given, target)
  }
  if (Array.isArray(native['input']))
    body['input'] = native['input'].flatMap((item: Json) => passItem(withoutTools(objectIn(item), unoffered)))
  if (unoffered.size > 0) body['tool_choice'] = withoutSearches(native['tool_choice'], request)
  if (searchesMax > 0) body['max_tool_calls'] = searchesMax
  if (ask.stream) body['stream_options'] = { include_obfuscation: false, ...objectIn(native['stream_options']) }
  return JSON.stringify(body)
}

/**
 * The vendor can report which part of an earlier answer its cache had, and would look that answer up among those of all
 * our customers. Some clients name one with every request (Pydantic AI); nothing else in the answer depends on it.
 */
function uncompared({ comparison_response_id: _answer, ...options }: JsonObject): JsonObject | undefined {
  return Object.keys(options).length > 0 ? options : undefined
}

/** The vendor charges a search of its own index like any other, so a search without external access is not offered. */
function unofferedTools(request: ResponsesRequest): ReadonlySet<unknown> {
  const searches = new Set(webSearches(request).map(({ tool }): WrittenTool => tool))
  const tools = placedTools(request).map(({ tool }) => tool)
  return new Set(tools.filter((tool) => isWebSearch(tool) && !searches.has(tool)))
}

/** The vendor refuses a list of allowed tools that names one not offered; where it names no other, none is allowed. */
function withoutSearches(choice: Json | undefined, request: ResponsesRequest): Json | undefined {
  const { type, tools: named } = objectIn(choice)
  if (type !== 'allowed_tools' || webSearches(request).length > 0) return choice
  const tools = objectsIn(named).filter((tool) => !isSearchType(textIn(tool['type'])))
  return tools.length === 0 ? 'none' : { ...objectIn(choice), tools }
}

/** Tools are offered by the request and by items of its input. */
function withoutTools(offering: JsonObject, unoffered: ReadonlySet<unknown>): JsonObject {
  const { tools } = offering
  return Array.isArray(tools) ? { ...offering, tools: tools.filter((tool: Json) => !unoffered.has(tool)) } : offering
}

/**
 * Clients send items back as they came. The vendor stores none of them, so it could not find them by their ids, and it
 * refuses another vendor's signature and the fields that its own client library adds when it parses.
 */
function passItem({ id, extra_content: _signed, parsed_arguments: _read, ...written }: JsonObject): JsonObject[] {
  const item = Array.isArray(written['content']) ? { ...written, content: written['content'].map(passPart) } : written
  const { type, call_id: callId } = item
  if (type === 'reasoning') return passReasoning(item)
  if (type === 'web_search_call') return [{ id: id ?? null, ...item }]
  return [typeof callId === 'string' ? { ...item, call_id: writeCallId(callId, 'any') } : item]
}

function passPart(written: Json): Json {
  const { parsed: _read, ...part } = objectIn(written)
  return part
}

/** Passes reasoning as the vendor encrypted it. Reasoning that this vendor cannot decrypt is left out. */
function passReasoning(item: JsonObject): JsonObject[] {
  const { encrypted_content: seal } = item
  if (typeof seal !== 'string' || seal === '') return []
  const sealed = unseal(seal)
  if (sealed === undefined) return [{ summary: [], ...item }]
  const encrypted = sealed.kind === 'thought' ? openaiReasoning(sealed.signature) : undefined
  return encrypted === undefined ? [] : [{ summary: [], ...item, encrypted_content: encrypted }]
}
