import type { JsonObject } from '../../base/json.ts'
import { nearestEffort, type Effort, type Thinking } from '../../capabilities/conversation.ts'

/**
 * How a vendor of the common protocol is told to think: by `reasoning_effort`; by DashScope's `enable_thinking` and
 * `thinking_budget`; or by Ark's `thinking`, beside an effort where the model takes one. With `unless-off` the model
 * thinks unless `thinking` switches it off, and that field has no other use.
 */
export type ThinkingSwitch = 'effort' | 'enable_thinking' | 'thinking' | 'unless-off'

export type Thinker = {
  readonly thinkingSwitch: ThinkingSwitch
  readonly efforts: readonly string[]
  readonly upstreamModel: string
}

// DashScope takes a budget in tokens where clients name an effort. The steps are those of Google's own mapping.
const budgets: { readonly [E in Effort]?: number } = { minimal: 1_024, low: 1_024, medium: 8_192 }
const budgetHigh = 24_576

/**
 * Models that always think: Qwen's take a budget but no switch, and those of Kimi and GLM refuse to be switched off.
 */
const alwaysThinks = /^qwq-|-thinking(?:-|$)|^kimi-k(?:2\.7-code|[3-9])|^glm-5\.3/

/** OpenAI's models since gpt-5.4. In chat completions the vendor refuses tools beside an effort for them. */
export const openaiNewer = /^gpt-(?:5\.(?:[4-9]|\d{2})|[6-9])/

/** Whether tools need the effort `none` in chat completions, for requests that their other protocol cannot take. */
export function restsBesideTools({ efforts, upstreamModel }: Thinker): boolean {
  return efforts.includes('none') && openaiNewer.test(upstreamModel)
}

/** A model that cannot stop thinking gets its lowest effort for `none`, not its default. */
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
