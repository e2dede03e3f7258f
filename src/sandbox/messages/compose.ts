import type { Units } from '../bill.ts'
import { composeContent, composeReasoning } from '../compose-text.ts'
import type { CacheUse } from '../marked-cache.ts'
import { shorten } from '../prose.ts'
import { schemaInstance } from '../schema-instance.ts'
import { hashText, seeded, seededId } from '../seeded.ts'
import { splitTokens } from '../tokens.ts'
import type { MessagesAsk } from './ask.ts'
import { citeDocuments } from './citations.ts'
import { citeWeb, searchWeb, type WebResult } from './search.ts'
import { redactThinking, signThinking } from './signature.ts'
import type { Tool } from './tools.ts'

/** One block of the answer, token by token where it has tokens, before it is written in any form. */
export type Block =
  | {
      readonly type: 'thinking'
      readonly tokens: readonly string[]
      readonly isShown: boolean
      readonly signature: string
    }
  | { readonly type: 'redacted_thinking'; readonly tokens: readonly string[]; readonly data: string }
  | { readonly type: 'text'; readonly tokens: readonly string[]; readonly citations: readonly unknown[] }
  | ({ readonly type: 'tool_use' | 'server_tool_use' } & ToolCall)
  | { readonly type: 'web_search_tool_result'; readonly id: string; readonly results: readonly WebResult[] }

type ToolCall = {
  readonly id: string
  readonly name: string
  readonly nameTokens: number
  /** The JSON of the input, cut where the answer was cut. */
  readonly input: readonly string[]
}

export type StopReason =
  | 'end_turn'
  | 'max_tokens'
  | 'stop_sequence'
  | 'tool_use'
  | 'pause_turn'
  | 'refusal'
  | 'model_context_window_exceeded'

export type Composition = {
  readonly id: string
  readonly model: string
  readonly blocks: readonly Block[]
  readonly stopReason: StopReason
  readonly stopSequence: string | null
  /** What is known when the answer begins: the prompt, without any search results or output. */
  readonly promptUnits: Units
  /** The usage that is reported and billed once the answer is complete. */
  readonly units: Units
}

type Draft = { readonly blocks: Block[]; left: number; stopReason: StopReason; stopSequence: string | null }

/** Decides the whole answer, which depends only on the ask and what the cache holds. */
export function compose(ask: MessagesAsk, cache: CacheUse): Composition {
  const draft: Draft = { blocks: [], left: ask.outputTokensMax, stopReason: 'end_turn', stopSequence: null }
  fill(ask, draft)
  const { model } = ask.model
  const promptUnits = countPrompt(ask, cache)
  return {
    id: seededId('msg_01', hashText(model, ask.seed)),
    model: ask.steering.has('dated') ? `${model}-20260101` : model,
    blocks: draft.blocks,
    stopReason: draft.stopReason,
    stopSequence: draft.stopSequence,
    promptUnits,
    units: countAll(ask, promptUnits, draft.blocks),
  }
}

/** Reasons, searches, then calls tools or answers in words, each as far as the tokens reach. */
function fill(ask: MessagesAsk, draft: Draft): void {
  think(ask, draft)
  const isFull = ask.thinkingTokens > 0 && draft.left === 0
  const searches = ask.tools.filter(({ kind }) => kind === 'search')
  const calls = ask.tools.filter(({ kind }) => kind === 'client')
  if (isFull) draft.stopReason = ask.fullStop
  else if (ask.steering.has('refusal')) refuse(ask, draft)
  else if (!searches.every((tool) => search(ask, draft, tool))) draft.stopReason = ask.fullStop
  else if (ask.pauses && searches.length > 0) draft.stopReason = 'pause_turn'
  else if (calls.length > 0) call(ask, draft, calls)
  else speak(ask, draft)
}

function think(ask: MessagesAsk, draft: Draft): void {
  const count = Math.min(ask.thinkingTokens, draft.left)
  if (count === 0) return
  const tokens = composeReasoning(ask, 0, count)
  draft.left -= count
  if (ask.steering.has('redacted')) {
    draft.blocks.push({ type: 'redacted_thinking', tokens, data: redactThinking(ask.seed) })
    return
  }
  const signature = signThinking(ask.showsThinking ? tokens.join('') : '', ask.seed)
  draft.blocks.push({ type: 'thinking', tokens, isShown: ask.showsThinking, signature })
}

const tokensBeforeRefusal = 5

function refuse(ask: MessagesAsk, draft: Draft): void {
  const { content } = composeContent(ask, 0, Math.min(tokensBeforeRefusal, draft.left))
  if (content.length > 0) draft.blocks.push({ type: 'text', tokens: content, citations: [] })
  draft.stopReason = 'refusal'
}

/** The vendor's own tool: its call and its result are part of the same turn. False where the tokens ran out. */
function search(ask: MessagesAsk, draft: Draft, tool: Tool): boolean {
  const seed = hashText(`search ${tool.name}`, ask.seed)
  const question = shorten(ask.userText)
  const asked = composeCall(tool.name, JSON.stringify({ query: question }), draft.left)
  if (!asked?.isWhole) return false
  const id = seededId('srvtoolu_01', seed)
  draft.left -= asked.nameTokens + asked.input.length
  draft.blocks.push({ type: 'server_tool_use', id, ...asked })
  draft.blocks.push({ type: 'web_search_tool_result', id, results: searchWeb(question, tool.domain, seed) })
  return true
}

function call(ask: MessagesAsk, draft: Draft, tools: readonly Tool[]): void {
  for (const [index, tool] of tools.entries()) {
    const seed = hashText(`call ${index} ${tool.name}`, ask.seed)
    const input = JSON.stringify(schemaInstance(tool.schema, seeded(seed)))
    const made = composeCall(tool.name, input, draft.left)
    if (made) {
      draft.left -= made.nameTokens + made.input.length
      draft.blocks.push({ type: 'tool_use', id: seededId('toolu_01', seed), ...made })
    }
    if (made?.isWhole) continue
    draft.stopReason = ask.fullStop
    return
  }
  draft.stopReason = 'tool_use'
}

/**
 * As with the real vendor, the cap may end the answer in the middle of the input. Undefined if not even the name fits.
 */
function composeCall(
  name: string,
  json: string,
  cap: number,
): (Omit<ToolCall, 'id'> & { isWhole: boolean }) | undefined {
  const nameTokens = splitTokens(name).length
  if (nameTokens > cap) return undefined
  const whole = splitTokens(json)
  const input = whole.slice(0, cap - nameTokens)
  return { name, nameTokens, input, isWhole: input.length === whole.length }
}

function speak(ask: MessagesAsk, draft: Draft): void {
  const { content, finish, stoppedBy } = composeContent(ask, 0, draft.left)
  if (content.length > 0) draft.blocks.push({ type: 'text', tokens: content, citations: citationsFor(ask, draft) })
  if (finish === 'length') draft.stopReason = ask.fullStop
  else if (ask.pauses) draft.stopReason = 'pause_turn'
  else if (stoppedBy !== undefined) {
    draft.stopReason = 'stop_sequence'
    draft.stopSequence = stoppedBy
  }
}

/** Web results are cited if there are any, otherwise the documents of the request. */
function citationsFor({ cited, seed }: MessagesAsk, { blocks }: Draft): readonly unknown[] {
  const found = blocks.flatMap((block) => (block.type === 'web_search_tool_result' ? block.results : []))
  return found.length > 0 ? found.map((result, index) => citeWeb(result, seed + index)) : citeDocuments(cited)
}

/** The three ways of charging a prompt (plain, cache read, cache write) share no tokens. */
function countPrompt(ask: MessagesAsk, { read, write5m, write1h }: CacheUse): Units {
  if (ask.steering.has('zero')) {
    return { input: 0, cachedInput: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0, webSearches: 0 }
  }
  const input = ask.promptTokens - read - write5m - write1h
  return {
    input,
    cachedInput: read,
    cacheWrite5m: write5m,
    cacheWrite1h: write1h,
    output: 0,
    reasoning: 0,
    webSearches: 0,
  }
}

/** Web results are read as input, so the input grows while the answer is made. */
function countAll(ask: MessagesAsk, prompt: Units, blocks: readonly Block[]): Units {
  if (ask.steering.has('zero')) return prompt
  const found = blocks.filter((block) => block.type === 'web_search_tool_result')
  const foundTokens = found.reduce((sum, { results }) => sum + splitTokens(JSON.stringify(results)).length, 0)
  const thoughts = blocks.filter(({ type }) => type === 'thinking' || type === 'redacted_thinking')
  const output = ask.steering.number('usage') ?? sumTokens(blocks)
  return {
    ...prompt,
    input: prompt.input + foundTokens,
    output,
    reasoning: Math.min(sumTokens(thoughts), Math.max(0, output)),
    webSearches: found.length,
  }
}

function sumTokens(blocks: readonly Block[]): number {
  return blocks.reduce((sum, block) => sum + tokensOf(block), 0)
}

function tokensOf(block: Block): number {
  if (block.type === 'web_search_tool_result') return 0
  return 'tokens' in block ? block.tokens.length : block.nameTokens + block.input.length
}
