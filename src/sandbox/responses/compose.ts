import type { Units } from '../bill.ts'
import { composeContent, composeReasoning, countUnits } from '../compose-text.ts'
import { fieldsIn, isGiven } from '../fields.ts'
import { blockTokens } from '../prompt.ts'
import { cachedBlocksMin } from '../prompt-cache.ts'
import { shorten } from '../prose.ts'
import { schemaInstance } from '../schema-instance.ts'
import { hashText, seeded, seededId } from '../seeded.ts'
import { splitTokens } from '../tokens.ts'
import type { ResponsesAsk } from './ask.ts'
import { sealReasoning } from './sealed.ts'
import type { Tool } from './tools.ts'

/** One item of the answer, token by token where it has tokens, before it is written in any form. */
export type Item = ReasoningItem | Message | ToolCall | WebSearch

export type ReasoningItem = {
  readonly type: 'reasoning'
  readonly id: string
  /** The reasoning itself is never shown. A summary is given where the request asks for it, at no extra cost. */
  readonly tokens: number
  readonly summary: readonly string[]
  readonly sealed: string | undefined
}

export type Message = {
  readonly type: 'message'
  readonly id: string
  readonly part: 'output_text' | 'refusal'
  readonly tokens: readonly string[]
  readonly citations: readonly unknown[]
  readonly isWhole: boolean
}

export type ToolCall = {
  readonly type: 'function_call' | 'custom_tool_call' | 'tool_search_call'
  readonly id: string
  readonly callId: string
  readonly name: string
  readonly namespace: string | undefined
  readonly nameTokens: number
  /** The arguments or the plain text, cut where the answer was cut. */
  readonly input: readonly string[]
  readonly isWhole: boolean
}

export type WebSearch = {
  readonly type: 'web_search_call'
  readonly id: string
  readonly query: string
  readonly tokens: number
  readonly found: readonly { readonly url: string; readonly title: string }[]
}

export type Composition = {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly items: readonly Item[]
  /** Why the answer is incomplete; undefined for a complete one. */
  readonly cutBy: 'max_output_tokens' | 'content_filter' | undefined
  /** The usage that is reported and billed once the answer is complete. */
  readonly units: Units
}

type Draft = { readonly items: Item[]; left: number; cutBy: Composition['cutBy'] }

/** Decides the whole answer, which depends only on the ask, the cached tokens and the clock. */
export function compose(ask: ResponsesAsk, cachedTokens: number): Composition {
  const draft: Draft = { items: [], left: ask.outputTokensMax, cutBy: undefined }
  fill(ask, draft)
  const { model } = ask.model
  return {
    id: seededId('resp_', hashText(model, ask.seed)),
    created: Math.floor(Date.now() / 1000),
    model: ask.steering.has('dated') ? `${model}-2026-01-01` : model,
    items: draft.items,
    cutBy: draft.cutBy,
    units: count(ask, draft.items, cachedTokens),
  }
}

/** Reasons, searches, then calls tools or answers in words, each as far as the tokens reach. */
function fill(ask: ResponsesAsk, draft: Draft): void {
  think(ask, draft)
  // Reasoning used up the whole cap: the answer is empty but still costs.
  if (draft.left === 0) {
    draft.cutBy = 'max_output_tokens'
    return
  }
  const searches = ask.tools.filter(({ kind }) => kind === 'web_search')
  const calls = ask.tools.filter(({ kind }) => kind !== 'web_search')
  if (ask.steering.has('refusal')) return refuse(ask, draft)
  if (ask.steering.text('finish') === 'content_filter') return filter(ask, draft)
  for (const tool of searches) if (draft.cutBy === undefined) search(ask, draft, tool)
  if (draft.cutBy !== undefined) return
  if (calls.length > 0) call(ask, draft, calls)
  else speak(ask, draft)
}

const summaryTokensMax = 24

function think(ask: ResponsesAsk, draft: Draft): void {
  const tokens = Math.min(ask.reasoningTokens, draft.left)
  if (tokens === 0) return
  draft.left -= tokens
  draft.items.push({
    type: 'reasoning',
    id: seededId('rs_', hashText('reasoning', ask.seed)),
    tokens,
    summary: isSummarized(ask) ? composeReasoning(ask, 0, Math.min(tokens, summaryTokensMax)) : [],
    sealed: ask.includes.has('reasoning.encrypted_content') ? sealReasoning(ask.model, ask.seed) : undefined,
  })
}

function isSummarized({ body }: ResponsesAsk): boolean {
  return isGiven(fieldsIn(body.reasoning).summary)
}

function messageOf(ask: ResponsesAsk, message: Omit<Message, 'type' | 'id'>): Message {
  return { type: 'message', id: seededId('msg_', hashText('message', ask.seed)), ...message }
}

function refuse(ask: ResponsesAsk, draft: Draft): void {
  const whole = splitTokens("I'm sorry, but I cannot assist with that request.")
  const tokens = whole.slice(0, draft.left)
  const isWhole = tokens.length === whole.length
  draft.items.push(messageOf(ask, { part: 'refusal', tokens, citations: [], isWhole }))
  if (!isWhole) draft.cutBy = 'max_output_tokens'
}

const tokensBeforeFilter = 5

function filter(ask: ResponsesAsk, draft: Draft): void {
  const { content } = composeContent(ask, 0, Math.min(tokensBeforeFilter, draft.left))
  draft.items.push(messageOf(ask, { part: 'output_text', tokens: content, citations: [], isWhole: false }))
  draft.cutBy = 'content_filter'
}

const resultsPerSearch = 2

/** The vendor's own tool. It finds pages that do not exist, the same for the same question. */
function search(ask: ResponsesAsk, draft: Draft, tool: Tool): void {
  const query = shorten(ask.userText)
  const tokens = splitTokens(JSON.stringify({ query })).length
  if (tokens > draft.left) {
    draft.cutBy = 'max_output_tokens'
    return
  }
  draft.left -= tokens
  const found = Array.from({ length: resultsPerSearch }, (_, index) => ({
    url: `https://example.com/road/${index + 1}`,
    title: `Road ${index + 1}: ${query}`,
  }))
  draft.items.push({
    type: 'web_search_call',
    id: seededId('ws_', hashText(tool.name, ask.seed)),
    query,
    tokens,
    found,
  })
}

const callTypes = { function: 'function_call', custom: 'custom_tool_call', tool_search: 'tool_search_call' } as const
const idStarts = { function: 'fc_', custom: 'ctc_', tool_search: 'tsc_' } as const

function call(ask: ResponsesAsk, draft: Draft, tools: readonly Tool[]): void {
  for (const [index, { kind, name, namespace, schema }] of tools.entries()) {
    if (kind === 'web_search') continue
    const seed = hashText(`call 0 ${index} ${name}`, ask.seed)
    const nameTokens = splitTokens(name).length
    const text = kind === 'custom' ? shorten(ask.userText) : JSON.stringify(schemaInstance(schema, seeded(seed)))
    const whole = splitTokens(text)
    const input = whole.slice(0, Math.max(0, draft.left - nameTokens))
    const isWhole = input.length === whole.length
    // As with the real vendor, the cap may cut the arguments. A call whose name does not fit is left out.
    if (nameTokens <= draft.left) {
      const ids = { id: seededId(idStarts[kind], seed), callId: seededId('call_', seed) }
      draft.items.push({ type: callTypes[kind], ...ids, name, namespace, nameTokens, input, isWhole })
      draft.left -= nameTokens + input.length
      if (isWhole) continue
    }
    draft.cutBy = 'max_output_tokens'
    return
  }
}

function speak(ask: ResponsesAsk, draft: Draft): void {
  const { content, finish } = composeContent(ask, 0, draft.left)
  const isWhole = finish !== 'length'
  const found = draft.items.flatMap((item) => (item.type === 'web_search_call' ? item.found : []))
  const citations = found.map(({ url, title }) => ({
    type: 'url_citation',
    start_index: 0,
    end_index: Math.min(10, content.join('').length),
    url,
    title,
  }))
  draft.items.push(messageOf(ask, { part: 'output_text', tokens: content, citations, isWhole }))
  if (!isWhole) draft.cutBy = 'max_output_tokens'
}

/** A model with a price for cache writes charges it for every cacheable block that was not read from the cache. */
function count(ask: ResponsesAsk, items: readonly Item[], cachedTokens: number): Units {
  const made = items.map((item) => ({
    outputTokens: outputTokensOf(item),
    reasoningTokens: item.type === 'reasoning' ? item.tokens : 0,
  }))
  const units = countUnits(ask, made, cachedTokens)
  if (ask.steering.has('zero')) return units
  const searches = items.filter(({ type }) => type === 'web_search_call').length
  const blocks = ask.model.prices.cacheWrite5m === undefined ? 0 : ask.prompt.blocks.length
  const written = blocks < cachedBlocksMin ? 0 : Math.min(units.input, blocks * blockTokens - units.cachedInput)
  return {
    ...units,
    input: units.input - written,
    ...(written > 0 && { cacheWrite5m: written }),
    ...(searches > 0 && { webSearches: searches }),
  }
}

function outputTokensOf(item: Item): number {
  switch (item.type) {
    case 'reasoning':
    case 'web_search_call':
      return item.tokens
    case 'message':
      return item.tokens.length
    case 'function_call':
    case 'custom_tool_call':
    case 'tool_search_call':
      return item.nameTokens + item.input.length
  }
}
