import { asDouble, type Json } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { isEffort, type Thinking } from '../../capabilities/conversation.ts'
import { objectIn, textIn } from '../loose.ts'

const switchedOff: Thinking = { effort: 'none', isShown: false }
const switchedOn: ReadonlySet<string> = new Set(['enabled', 'adaptive', 'between_tools', 'auto'])

/**
 * How much the model is to think. The protocol's own field comes first. Clients also write `thinking`, which Anthropic
 * takes on its endpoint of this protocol and others adopted, and `reasoning`, which is OpenRouter's.
 */
export function readThinking({ native }: Pick<ChatAsk, 'native'>): Thinking | undefined {
  const effort = textIn(native['reasoning_effort'])
  if (isEffort(effort)) return { effort, isShown: true }
  const thinking = inThinking(native['thinking']) ?? inReasoning(native['reasoning'])
  // A budget of 0 means no thinking; passed on as a budget, it would become Anthropic's minimum.
  return thinking?.budget === 0 ? switchedOff : thinking
}

function inThinking(written: Json | undefined): Thinking | undefined {
  const { type, budget_tokens: budget, display } = objectIn(written)
  if (type === 'disabled') return switchedOff
  return switchedOn.has(textIn(type)) ? { ...budgetOf(budget), isShown: display !== 'omitted' } : undefined
}

function inReasoning(written: Json | undefined): Thinking | undefined {
  const { effort, max_tokens: budget, enabled, exclude } = objectIn(written)
  if (enabled === false) return switchedOff
  const word = textIn(effort)
  const amount = { ...(isEffort(word) && { effort: word }), ...budgetOf(budget) }
  if (enabled !== true && Object.keys(amount).length === 0) return undefined
  return { ...amount, isShown: exclude !== true }
}

function budgetOf(written: Json | undefined): Pick<Thinking, 'budget'> {
  const budget = asDouble(written)
  return typeof budget === 'number' && Number.isInteger(budget) && budget >= 0 ? { budget } : {}
}
