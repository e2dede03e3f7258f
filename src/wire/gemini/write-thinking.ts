import type { JsonObject } from '../../base/json.ts'
import { type Conversation, type Effort, nearestEffort, type Thinking } from '../../capabilities/conversation.ts'
import { type Family, familyOf } from './family.ts'

/** How the vendor's own common-protocol endpoint maps efforts to budgets; higher efforts get the model's maximum. */
const budgets = {
  none: 0,
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: Infinity,
  max: Infinity,
} as const satisfies Record<Effort, number>

/**
 * Writes `thinkingConfig`. A client of another protocol cannot know this model's scale, so its value becomes the
 * nearest one that the model has; efforts of the common protocol were already checked against the model's list.
 */
export function writeThinking(
  { thinking: asked, showsOwnThinking }: Pick<Conversation, 'thinking' | 'showsOwnThinking'>,
  model: { readonly upstreamModel: string; readonly efforts: readonly string[] },
): JsonObject | undefined {
  const family = familyOf(model.upstreamModel)
  // A model without efforts may not think at all.
  const hasOwnThinking = family.thinksByItself && model.efforts.length > 0
  const thinking = asked ?? (showsOwnThinking === true && hasOwnThinking ? { isShown: true } : undefined)
  if (thinking === undefined) return undefined
  const amount = family.isThirdGeneration ? levelOf(thinking, model.efforts) : budgetOf(thinking, family, model.efforts)
  // The vendor refuses `includeThoughts` where thinking is off.
  const isShown = thinking.isShown && amount['thinkingBudget'] !== 0
  if (!isShown && Object.keys(amount).length === 0) return undefined
  return { ...amount, ...(isShown && { includeThoughts: true }) }
}

function budgetOf({ effort, budget }: Thinking, family: Family, listed: readonly string[]): JsonObject {
  const wanted = effort === 'none' ? 0 : (budget ?? (effort === undefined ? undefined : budgets[effort]))
  if (wanted === undefined) return {}
  const canRest = listed.length > 0 ? listed.includes('none') : family.maySwitchThinkingOff
  if (wanted <= 0 && canRest) return { thinkingBudget: 0 }
  const { least, most } = family.budget
  return { thinkingBudget: Math.min(Math.max(wanted, least), most) }
}

const levels: readonly Effort[] = ['minimal', 'low', 'medium', 'high']
/** Some models, and all of the larger ones, refuse `minimal`, so it is not sent to a model whose levels are unknown. */
const levelsOfUnknown: readonly Effort[] = ['low', 'medium', 'high']

/** Thinking cannot be switched off in the third generation; the lowest level comes nearest. */
function levelOf(thinking: Thinking, listed: readonly string[]): JsonObject {
  if (thinking.effort === undefined && thinking.budget === undefined) return {}
  const offered = listed.length === 0 ? levelsOfUnknown : levels.filter((level) => listed.includes(level))
  const level = nearestEffort(thinking, offered) ?? offered[0]
  return level === undefined ? {} : { thinkingLevel: level.toUpperCase() }
}
