import { GatewayError } from '../base/errors.ts'
import { isObject, type JsonObject } from '../base/json.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import { parseLoosely } from './loose.ts'

/** The object that a vendor answered with. A page of HTML, or nothing at all, is no answer, whatever its status said. */
export function answerIn(body: Uint8Array, parse: typeof parseLoosely = parseLoosely): JsonObject {
  const json = parse(decodeUtf8(body))
  if (isObject(json)) return json
  throw noAnswer()
}

export function noAnswer(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor sent no answer that can be read.")
}
