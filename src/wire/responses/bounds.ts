import { imageTokensMax } from '../estimate.ts'
import type { Item, ResponsesRequest } from './schema.ts'
import { placedTools } from './tools.ts'

// What we add to the description of a tool that takes plain text: about sixty tokens.
const plainToolTokensMax = 200

/**
 * An upper bound of the input tokens. A byte-level tokenizer makes at most one token per byte; added to that is what
 * the body only refers to, and what we add.
 */
export function inputTokensMax(request: ResponsesRequest, bodyBytes: number, contextTokens: number): number {
  const items = typeof request.input === 'string' ? [] : request.input
  const media = items.reduce((sum, item) => sum + mediaTokensMax(item, contextTokens), 0)
  const tools = placedTools(request).flatMap(({ tool }) => (tool.type === 'namespace' ? tool.tools : [tool]))
  const plain = tools.filter(({ type }) => type === 'custom').length
  return Math.min(contextTokens, bodyBytes + media + plain * plainToolTokensMax)
}

function mediaTokensMax(item: Item, contextTokens: number): number {
  if (item.type === 'image_generation_call') return imageTokensMax
  const parts = partsOf(item)
  if (!Array.isArray(parts)) return 0
  let tokens = 0
  for (const { type } of parts as readonly { readonly type?: unknown }[]) {
    if (type === 'input_image') tokens += imageTokensMax
    // Audio and files have no published bound except the context.
    else if (type === 'input_file' || type === 'input_audio') tokens += contextTokens
  }
  return tokens
}

function partsOf(item: Item): unknown {
  if ('content' in item) return item.content
  return 'output' in item ? item.output : undefined
}
