import { badRequest } from '../base/errors.ts'
import { isGiven, type JsonObject } from '../base/json.ts'
import { missing } from './issues.ts'

/** The model that a body names. It is looked up before anything else is read, because the rules depend on the model. */
export function requireModel({ model }: JsonObject): string {
  if (!isGiven(model) || model === '') throw missing('model')
  if (typeof model !== 'string') throw badRequest("Invalid 'model': expected string.", 'model', 'invalid_type')
  return model
}
