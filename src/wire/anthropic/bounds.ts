import type { JsonObject } from '../../base/json.ts'
import type { ChatTraits } from '../../capabilities/chat.ts'
import { imageTokensMax } from '../estimate.ts'
import { objectIn, objectsIn, textIn } from '../loose.ts'
import { familyOf, kindOf, toolsIn, typeOf } from './tools.ts'

// The vendor adds up to 530 tokens of its own that tell the model how to call tools.
const toolsTokensMax = 1_000
// The vendor describes dated tools itself, not the body: bash takes 245 tokens, an editor 700, a whole toolset more.
const datedToolTokensMax = 10_000
// For a search tool without `max_uses`: a turn pauses after ten rounds of hosted tools, with two searches in each.
const searchesMaxUnsaid = 20
// The betas `context-1m-…` and `output-128k-…` raise these limits on models that have less without them.
const longContextTokens = 1_000_000
const longOutput = /\boutput-(\d+)k-/

/** The model's limits with these betas: the hold has to cover what the vendor will then take and produce. */
export function withBetaLimits(traits: ChatTraits, betas: string): ChatTraits {
  const context = betas.includes('context-1m-') ? longContextTokens : 0
  const output = Number(longOutput.exec(betas)?.[1] ?? 0) * 1_000
  if (context <= traits.contextTokens && output <= traits.outputTokensMax) return traits
  return {
    ...traits,
    sells: (unit) => traits.sells(unit),
    contextTokens: Math.max(context, traits.contextTokens),
    outputTokensMax: Math.max(output, traits.outputTokensMax),
  }
}

/**
 * An upper bound of the input tokens. A byte-level tokenizer makes at most one token per byte; added to that is what
 * the body only refers to: images, files, pages that the vendor will fetch, and tools that the vendor describes itself.
 */
export function inputTokensMax(body: JsonObject, bodyBytes: number, context: number): number {
  return Math.min(context, bodyBytes + toolTokensMax(body, context) + mediaTokensMax(body, context))
}

function toolTokensMax(body: JsonObject, context: number): number {
  const tools = toolsIn(body)
  if (objectsIn(body['mcp_servers']).length > 0) return context
  let tokens = tools.length > 0 ? toolsTokensMax : 0
  for (const { tool } of tools) {
    if (kindOf(tool) !== 'client') return context // only the context bounds what the vendor finds and reads
    if (familyOf(typeOf(tool)) !== undefined) tokens += datedToolTokensMax
  }
  return tokens
}

function mediaTokensMax(body: JsonObject, context: number): number {
  let tokens = 0
  for (const message of objectsIn(body['messages'])) tokens += blocksTokensMax(objectsIn(message['content']), context)
  return tokens
}

function blocksTokensMax(blocks: readonly JsonObject[], context: number): number {
  let tokens = 0
  for (const block of blocks) {
    switch (textIn(block['type'])) {
      case 'image':
        tokens += imageTokensMax
        break
      case 'document':
        tokens += documentTokensMax(objectIn(block['source']), context)
        break
      case 'tool_result':
        tokens += blocksTokensMax(objectsIn(block['content']), context)
        break
      case 'container_upload':
        tokens += context
        break
      default: // text, which the bytes bound already
    }
  }
  return tokens
}

function documentTokensMax(source: JsonObject, context: number): number {
  if (source['type'] === 'text') return 0
  if (source['type'] === 'content') return blocksTokensMax(objectsIn(source['content']), context)
  // Every page of a PDF is read both as text and as an image: only the context bounds it.
  return context
}

/** How many searches the vendor may run and charge for. */
export function searchesMax(body: JsonObject): number {
  let searches = 0
  for (const { tool } of toolsIn(body)) {
    if (kindOf(tool) !== 'search') continue
    const uses = tool['max_uses']
    searches += typeof uses === 'number' ? uses : searchesMaxUnsaid
  }
  return searches
}
