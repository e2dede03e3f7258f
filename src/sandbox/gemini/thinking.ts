import { tokensFor } from '../effort-tokens.ts'
import { type Fields, textIn } from '../fields.ts'
import { isThinker, type SandboxModel } from '../model.ts'
import { invalid } from './errors.ts'

export type Thinking = {
  readonly tokens: number
  /** Whether the thoughts are shown, as `includeThoughts` asks, or only counted. */
  readonly isShown: boolean
}

/**
 * 2 for gemini-2.5-pro, 3 for gemini-3.1-pro-preview. Since generation 3 models have levels and insist on signatures.
 */
export function generationOf({ model }: Pick<SandboxModel, 'model'>): number {
  return Number(/gemini-(\d+)/.exec(model)?.[1] ?? 2)
}

export function readThinking(config: Fields, model: SandboxModel): Thinking {
  const { thinkingBudget: budget, includeThoughts } = config
  const level = config.thinkingLevel === 'THINKING_LEVEL_UNSPECIFIED' ? '' : textIn(config.thinkingLevel)
  if (typeof budget === 'number' && level !== '') {
    throw invalid('You can only set only one of thinking budget and thinking level.')
  }
  if (!isThinker(model)) {
    if (typeof budget !== 'number' && level === '' && includeThoughts !== true) return { tokens: 0, isShown: false }
    throw invalid('Thinking is not supported by this model.')
  }
  const tokens = typeof budget === 'number' ? tokensForBudget(budget, model) : tokensForLevel(level, model)
  return { tokens, isShown: includeThoughts === true }
}

function tokensForLevel(level: string, model: SandboxModel): number {
  const { model: id, efforts } = model
  if (level === '') {
    // By default 2.5-flash-lite does not reason, and the third generation reasons at its highest level.
    if (/2\.5-flash-lite/.test(id)) return 0
    return tokensFor(generationOf(model) >= 3 ? 'high' : 'medium')
  }
  if (generationOf(model) < 3) throw invalid('Thinking level is not supported for this model.')
  const effort = level.toLowerCase()
  if (efforts.length > 0 && !efforts.includes(effort)) {
    throw invalid(`Thinking level ${level} is not supported for this model. Please retry with other thinking level.`)
  }
  return tokensFor(effort)
}

const dynamic = -1

/** The budget is an upper bound: a larger budget yields more reasoning, but never more than it allows. */
function tokensForBudget(budget: number, model: SandboxModel): number {
  const { least, most } = budgetRange(model)
  if (budget === dynamic) return 64
  if (budget === 0) {
    if (canRest(model)) return 0
    throw invalid('Budget 0 is invalid. This model only works in thinking mode.')
  }
  if (budget < least || budget > most) {
    throw invalid(
      `The thinking budget ${budget} is invalid. Please choose a value between ${canRest(model) ? 0 : least} and ${most}.`,
    )
  }
  // On the vendor's OpenAI-compatible root low means 1,024, medium 8,192 and high 24,576.
  if (budget <= 1_024) return Math.min(budget, 16)
  return budget <= 8_192 ? 64 : 128
}

/** Only a model with the effort `none` can switch reasoning off; Pro models and the third generation cannot. */
function canRest(model: SandboxModel): boolean {
  return model.efforts.includes('none')
}

function budgetRange({ model }: SandboxModel): { least: number; most: number } {
  if (/pro/.test(model)) return { least: 128, most: 32_768 }
  return { least: /flash-lite/.test(model) ? 512 : 1, most: 24_576 }
}
