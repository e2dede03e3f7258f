import type { JsonObject } from '../../base/json.ts'
import {
  isCallForced,
  nearestEffort,
  type Conversation,
  type Effort,
  type Thinking,
} from '../../capabilities/conversation.ts'
import type { ModelRule } from '../../capabilities/model-rules.ts'
import type { Message } from './write-messages.ts'

/** Thinking budgets in tokens: from the vendor's minimum, doubled at each step. */
const budgets = {
  none: 0,
  minimal: 1_024,
  low: 2_048,
  medium: 4_096,
  high: 8_192,
  xhigh: 16_384,
  max: 32_768,
} as const satisfies Record<Effort, number>

const budgetMin = 1_024
// The vendor's default effort is high.
const effortUsual = 'high'
// Thinking gets at most this share of the output limit, so that room is left for an answer.
const thinkingShare = 0.8

type ThinkingAsk = {
  readonly conversation: Conversation
  readonly messages: readonly Message[]
  /** The model's efforts, lowest first. */
  readonly efforts: readonly string[]
  readonly rules: readonly ModelRule[]
  readonly maxTokens: number
}

export type WrittenThinking = { readonly thinking?: JsonObject; readonly effort?: string }

/** Models with the highest efforts decide how long they think and take an effort instead of a budget. */
export function isAdaptive(efforts: readonly string[]): boolean {
  return efforts.includes('xhigh') || efforts.includes('max')
}

export function writeThinking(ask: ThinkingAsk): WrittenThinking {
  const { conversation, messages, efforts, maxTokens } = ask
  const { thinking, toolChoice } = conversation
  if (thinking === undefined) return {}
  if (thinking.effort === 'none') return writeRest(ask)
  // The vendor refuses thinking beside a forced call.
  const isForced = isCallForced(toolChoice)
  if (isAdaptive(efforts)) return writeAdaptive(thinking, efforts, isForced)
  return isForced || !startsWithThinking(messages) ? {} : writeBudget(thinking, maxTokens)
}

/** A model that always thinks is asked for its least effort. */
function writeRest({ efforts, rules }: ThinkingAsk): WrittenThinking {
  const rest = rules.includes('rests-between-tools') ? 'between_tools' : 'disabled'
  if (efforts.includes('none')) return { thinking: { type: rest } }
  return isAdaptive(efforts) ? { effort: 'low' } : {}
}

function writeAdaptive(thinking: Thinking, efforts: readonly string[], isForced: boolean): WrittenThinking {
  const isSaid = thinking.effort !== undefined || thinking.budget !== undefined
  // The clients' `minimal` does not exist at the vendor, whose scale begins with `low`.
  const own = efforts.filter((known) => known !== 'minimal')
  const effort = isSaid ? nearestEffort(thinking, own) : undefined
  const display = thinking.isShown ? 'summarized' : 'omitted'
  return {
    ...(!isForced && { thinking: { type: 'adaptive', display } }),
    ...(effort !== undefined && { effort }),
  }
}

function writeBudget(thinking: Thinking, maxTokens: number): WrittenThinking {
  const budget = budgetFor(thinking, maxTokens)
  if (budget === undefined) return {}
  const display = thinking.isShown ? {} : { display: 'omitted' }
  return { thinking: { type: 'enabled', budget_tokens: budget, ...display } }
}

/**
 * The budget is always below the client's own limit, which is never raised because the hold covers no more. Undefined
 * where the limit leaves no room for the vendor's minimum.
 */
function budgetFor({ effort = effortUsual, budget }: Thinking, maxTokens: number): number | undefined {
  if (maxTokens <= budgetMin) return undefined
  const wanted = budget ?? budgets[effort]
  return Math.max(budgetMin, Math.min(wanted, Math.floor(maxTokens * thinkingShare)))
}

/** With a budget, the turn being continued must begin with its thinking, which a client may have lost. */
function startsWithThinking(messages: readonly Message[]): boolean {
  const index = messages.findLastIndex(({ role }) => role === 'assistant')
  const blocks = messages[index]?.content ?? []
  const isOpen = index === messages.length - 1 || blocks.some(({ type }) => type === 'tool_use')
  const [first] = blocks
  if (!isOpen || first === undefined) return true
  return first['type'] === 'thinking' || first['type'] === 'redacted_thinking'
}
