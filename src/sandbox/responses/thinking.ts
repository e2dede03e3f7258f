import { tokensFor } from '../effort-tokens.ts'
import { type Fields, fieldsIn, textIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { defaultEffort } from '../openai-efforts.ts'

/** The effort that applies to a request; null for a model that does not reason. */
export function effortOf(body: Fields, model: SandboxModel): string | null {
  if (!model.reasoning) return null
  return textIn(fieldsIn(body.reasoning).effort) || defaultEffort(model)
}

export function isThinking(model: SandboxModel, effort: string | null): boolean {
  return model.reasoning && effort !== 'none'
}

export function reasoningTokensFor(effort: string | null): number {
  return effort === null ? 0 : tokensFor(effort)
}
