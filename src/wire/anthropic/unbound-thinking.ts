import type { JsonObject } from '../../base/json.ts'
import { objectIn } from '../loose.ts'
import type { Message } from './write-messages.ts'
import type { WrittenThinking } from './write-thinking.ts'

/** The beta that `block_binding` belongs to. */
const bindingBeta = 'thinking-binding-controls-2026-08-01'

/**
 * Newer models refuse thinking if anything before it has changed since. Clients of other protocols change tools,
 * formats and instructions freely, and we write some of them as words, so such thinking is to be dropped instead. With
 * thinking switched off, or beside a forced call, the vendor cannot be told so, and it is not sent.
 */
export function unbound(
  messages: readonly Message[],
  asked: WrittenThinking,
  isForced: boolean,
): { messages: readonly Message[]; thinking: WrittenThinking } {
  if (!messages.some(({ content }) => content.some(isThought))) return { messages, thinking: asked }
  const { type = 'adaptive', display = 'omitted' } = asked.thinking ?? {}
  if (isForced || type !== 'adaptive') return { messages: messages.flatMap(withoutThoughts), thinking: asked }
  const loose = { type, display, block_binding: { prefix_mismatch_behavior: 'drop_block' } }
  return { messages, thinking: { ...asked, thinking: loose } }
}

/** The betas that this body needs. */
export function betasOf(body: JsonObject): Readonly<Record<string, string>> {
  return 'block_binding' in objectIn(body['thinking']) ? { 'anthropic-beta': bindingBeta } : {}
}

function isThought({ type }: JsonObject): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

function withoutThoughts(message: Message): readonly Message[] {
  const content = message.content.filter((block) => !isThought(block))
  return content.length === 0 ? [] : [{ ...message, content }]
}
