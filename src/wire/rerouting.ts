import { isGiven, type JsonObject } from '../base/json.ts'
import { notSupported } from './issues.ts'
import { objectIn } from './loose.ts'

/**
 * Fields by which a relay that stands in a vendor's place (OpenRouter, LiteLLM, Bifrost) would have another model, or
 * another host of it, answer instead of the one that was priced. Vendors themselves do not know them.
 */
export const reroutingFields = [
  'models',
  'route',
  'preset',
  'provider',
  'fallbacks',
  'context_window_fallbacks',
  'content_policy_fallbacks',
] as const

export function refuseRerouting(body: JsonObject): void {
  const field = reroutingFields.find((name) => isGiven(body[name])) ?? vercelField(body)
  if (field !== undefined) throw notSupported(field, 'another model has another price.')
}

/** Vercel's gateway has such fields in an object that is otherwise about how the model should answer. */
function vercelField({ providerOptions }: JsonObject): string | undefined {
  return isGiven(objectIn(providerOptions)['gateway']) ? 'providerOptions.gateway' : undefined
}
