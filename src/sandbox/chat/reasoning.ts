import { tokensFor } from '../effort-tokens.ts'
import { isThinker, type SandboxModel } from '../model.ts'
import { defaultEffort } from '../openai-efforts.ts'
import { type Fields, fieldsIn, isGiven, textIn } from '../fields.ts'

/** Whether the reasoning is shown as `reasoning_content`. OpenAI only counts it. */
export function showsReasoning(model: SandboxModel): boolean {
  return model.vendor !== 'openai'
}

export function reasoningTokensFor(body: Fields, model: SandboxModel): number {
  // DashScope's models have a switch instead of efforts.
  const mayThink = isThinker(model) || model.vendor === 'dashscope'
  if (!mayThink || !isThinking(body, model)) return 0
  const wanted = tokensFor(textIn(body.reasoning_effort) || defaultEffort(model, model.vendor === 'openai'))
  const budget = model.vendor === 'dashscope' ? body.thinking_budget : fieldsIn(body.thinking).budget_tokens
  return typeof budget === 'number' ? Math.min(wanted, budget) : wanted
}

/** The vendors' switches for reasoning: DashScope's `enable_thinking`, and `thinking: {type}` of Ark and others. */
function isThinking(
  { enable_thinking: enabled, thinking, reasoning_effort: effort }: Fields,
  model: SandboxModel,
): boolean {
  if (model.vendor === 'openai') return true
  if (model.vendor !== 'dashscope') return fieldsIn(thinking).type !== 'disabled'
  // Always on for thinking models, off by default for the commercial hybrids, on for the open-weight ones.
  if (/thinking|qwq/.test(model.model)) return true
  if (typeof enabled === 'boolean') return enabled
  return typeof effort === 'string' || /^qwen3-\d/.test(model.model)
}

/** `max_tokens` of Ark and of most DashScope models excludes reasoning; `max_completion_tokens` includes it. */
export function capsWordsAlone({ max_completion_tokens: cap }: Fields, { vendor }: SandboxModel): boolean {
  return (vendor === 'ark' || vendor === 'dashscope') && !isGiven(cap)
}
