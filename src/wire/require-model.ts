import { isGiven, type JsonObject } from '../base/json.ts'
import { invalid, missing } from './issues.ts'

/** The model that a body names. It is looked up before anything else is read, because the rules depend on the model. */
export function requireModel({ model }: JsonObject): string {
  if (!isGiven(model) || model === '') throw missing('model')
  if (typeof model !== 'string') throw invalid('model', 'expected string', 'invalid_type')
  return model
}
