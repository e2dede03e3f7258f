import { badRequest, type GatewayError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { objectIn, objectsIn } from '../loose.ts'

const nothingKept = 'nothing is kept here. Send the whole conversation in `input`.'

/**
 * Fields without which the answer would be another one than was asked for, and what to do instead. `plain`: the values
 * that ask for nothing.
 */
const refused: Readonly<Record<string, { readonly why: string; readonly plain?: readonly unknown[] }>> = {
  previous_response_id: { why: nothingKept },
  conversation: { why: nothingKept },
  prompt: { why: 'no prompts are kept here. Send its text in `instructions` and `input`.' },
  background: { why: 'nothing is kept here. Send the request with `stream` and read its answer.', plain: [false] },
  context_management: { why: 'a conversation is not shortened here. Send what is to be read.' },
  moderation: { why: 'it has no price here.' },
}

/** What cannot be done here is said, and never left out in silence. */
export function refuseFields(body: JsonObject): void {
  for (const [field, { why, plain = [] }] of Object.entries(refused)) {
    const value = body[field]
    if (value === undefined || value === null || plain.includes(value)) continue
    throw refusal(field, why)
  }
  // What a vendor keeps, it keeps for the operator: whoever names a file of it names somebody else's.
  for (const [at, item] of objectsIn(body['input']).entries()) refuseItem(item, `input[${at}]`)
}

function refuseItem(item: JsonObject, at: string): void {
  if (item['type'] === 'item_reference') throw refusal(`${at}.type`, nothingKept)
  for (const list of ['content', 'output'] as const) {
    for (const [index, part] of objectsIn(item[list]).entries()) {
      const id = objectIn(part)['file_id']
      if (typeof id !== 'string') continue
      throw refusal(`${at}.${list}[${index}].file_id`, 'files are not kept here. Send the bytes or a URL.')
    }
  }
}

function refusal(field: string, why: string): GatewayError {
  return badRequest(`'${field}' is not supported: ${why}`, field, 'unsupported_value')
}
