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

/** What cannot be read cannot be translated, and what it said would be missing from the reply without a word. */
export function unreadableEvent(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor sent something unreadable in its stream.")
}

/** An event at the end that cannot be read must not pass for an end. */
export function unreadableEnd(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor ended its stream with something unreadable.")
}
