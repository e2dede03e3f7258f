import { tokensFor } from '../effort-tokens.ts'
import { type Fields, fieldsIn, isGiven, textIn } from '../fields.ts'
import { isThinker, type SandboxModel } from '../model.ts'
import { invalid } from './errors.ts'
import type { Head } from './head.ts'
import { checkExtras, checkOneOf, fieldsAt, wholeAt } from './shape.ts'

const fieldsByType: Readonly<Record<string, readonly string[]>> = {
  enabled: ['type', 'budget_tokens', 'display'],
  adaptive: ['type', 'display'],
  disabled: ['type'],
  between_tools: ['type'],
}

export function isThinking(thinking: unknown): boolean {
  const { type } = fieldsIn(thinking)
  return type === 'enabled' || type === 'adaptive'
}

/** The vendor's rules on `thinking` and on the fields that may not accompany it. */
export function checkThinking(body: Fields, model: SandboxModel, { betas }: Head): void {
  if (!isGiven(body.thinking)) return
  const thinking = fieldsAt('thinking', body.thinking)
  const type = textIn(thinking.type)
  checkOneOf('thinking.type', thinking.type, Object.keys(fieldsByType))
  const place = `thinking.${type}`
  if (type === 'enabled') checkBudget(place, thinking, body)
  const binds = isThinking(thinking) && betas.has('thinking-binding-controls') ? ['block_binding'] : []
  checkExtras(place, thinking, [...(fieldsByType[type] ?? []), ...binds])
  if (isGiven(thinking.block_binding)) checkBinding(`${place}.block_binding`, thinking.block_binding)
  if (isGiven(thinking.display)) {
    const updates = betas.has('thinking-display-updates') ? ['updates'] : []
    checkOneOf(`${place}.display`, thinking.display, ['summarized', 'omitted', ...updates])
  }
  if (type !== 'disabled' && !isThinker(model)) throw invalid('', `'${model.model}' does not support thinking.`)
  if (model.thinkingTypes && !model.thinkingTypes.includes(type)) {
    throw invalid(place, `${type} thinking is not supported on this model`)
  }
  if (isThinking(thinking)) checkSamplingBeside(body)
}

/** What is to happen to thinking that comes back in another conversation. Whether it does is not checked here. */
function checkBinding(place: string, given: unknown): void {
  const binding = fieldsAt(place, given)
  checkExtras(place, binding, ['prefix_mismatch_behavior'])
  const { prefix_mismatch_behavior: behaviour } = binding
  if (isGiven(behaviour)) checkOneOf(`${place}.prefix_mismatch_behavior`, behaviour, ['error', 'drop_block'])
}

function checkBudget(place: string, { budget_tokens: budget }: Fields, { max_tokens: cap }: Fields): void {
  const tokens = wholeAt(`${place}.budget_tokens`, budget, 1_024)
  if (typeof cap !== 'number' || tokens < cap) return
  const message =
    '`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size'
  throw invalid('', message)
}

function checkSamplingBeside({ temperature, top_p: topP, top_k: topK }: Fields): void {
  if (isGiven(temperature) && temperature !== 1) {
    throw invalid('', '`temperature` may only be set to 1 when thinking is enabled.')
  }
  if (isGiven(topK)) throw invalid('', '`top_k` must be unset when thinking is enabled.')
  if (typeof topP === 'number' && topP < 0.95) {
    throw invalid('', '`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.')
  }
}

/** How many tokens the answer reasons. `answersResult` means that the last message brings the result of a tool. */
export function thinkingTokensFor(body: Fields, answersResult: boolean): number {
  const { type, budget_tokens: budget } = fieldsIn(body.thinking)
  if (!isThinking(body.thinking) && !(type === 'between_tools' && answersResult)) return 0
  // Without a given effort, Anthropic's default is high.
  const wanted = tokensFor(textIn(fieldsIn(body.output_config).effort) || 'high')
  return typeof budget === 'number' ? Math.min(wanted, budget) : wanted
}
