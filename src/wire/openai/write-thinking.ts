import type { JsonObject } from '../../base/json.ts'
import { nearestEffort, type Effort, type Thinking } from '../../capabilities/conversation.ts'

/**
 * How a vendor of the common protocol is told to think: by `reasoning_effort`; by DashScope's `enable_thinking` and
 * `thinking_budget`; or by Ark's `thinking`, beside an effort where the model takes one. Some think unless that field tells
 * them not to, and are told no more by it: `unless-off`.
 */
export type ThinkingSwitch = 'effort' | 'enable_thinking' | 'thinking' | 'unless-off'

export type Thinker = {
  readonly thinkingSwitch: ThinkingSwitch
  readonly efforts: readonly string[]
  readonly upstreamModel: string
}

// DashScope counts tokens of thought where clients name an effort. The steps are those of Google's own mapping.
const budgets: { readonly [E in Effort]?: number } = { minimal: 1_024, low: 1_024, medium: 8_192 }
const budgetHigh = 24_576

/** Models that cannot be kept from thinking: Qwen's take a budget and no switch, and Kimi's refuse to be switched off. */
const alwaysThinks = /^qwq-|-thinking(?:-|$)|^kimi-k2\.7-code/

/** OpenAI's models since gpt-5.4. In chat completions it refuses them tools beside an effort. */
export const openaiNewer = /^gpt-(?:5\.(?:[4-9]|\d{2})|[6-9])/

/** With tools these answer without thinking, or not at all, where the other protocol of their vendor does not take a request. */
export function restsBesideTools({ efforts, upstreamModel }: Thinker): boolean {
  return efforts.includes('none') && openaiNewer.test(upstreamModel)
}

/** One that cannot be kept from thinking thinks as little as it can, and not as much as it usually does. */
export function effortFor(thinking: Thinking, efforts: readonly string[]): string | undefined {
  return nearestEffort(thinking, efforts) ?? (thinking.effort === 'none' ? efforts[0] : undefined)
}

export function writeThinking(thinking: Thinking, { thinkingSwitch, efforts, upstreamModel }: Thinker): JsonObject {
  const isOff = thinking.effort === 'none'
  const effort = effortFor(thinking, efforts)
  const asEffort = effort === undefined ? {} : { reasoning_effort: effort }
  const isSwitched = !alwaysThinks.test(upstreamModel)
  switch (thinkingSwitch) {
    case 'effort':
      return asEffort
    case 'enable_thinking':
      if (isOff) return isSwitched ? { enable_thinking: false } : {}
      return { ...(isSwitched && { enable_thinking: true }), thinking_budget: budgetOf(thinking) }
    case 'thinking':
      if (isOff) return isSwitched ? { thinking: { type: 'disabled' } } : asEffort
      return { thinking: { type: 'enabled' }, ...asEffort }
    case 'unless-off':
      return isOff && isSwitched ? { thinking: { type: 'disabled' } } : asEffort
  }
}

function budgetOf({ budget, effort = 'medium' }: Thinking): number {
  return budget ?? budgets[effort] ?? budgetHigh
}
