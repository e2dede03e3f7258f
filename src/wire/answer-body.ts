import { GatewayError } from '../base/errors.ts'
import { isObject, type JsonObject } from '../base/json.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import { objectIn, parseLoosely } from './loose.ts'

/** The JSON object in a vendor's answer. An HTML page or an empty body is a failure, whatever the status said. */
export function answerIn(body: Uint8Array, parse: typeof parseLoosely = parseLoosely): JsonObject {
  const json = parse(decodeUtf8(body))
  if (isObject(json)) return json
  throw noAnswer()
}

/** The fields of a vendor's answer; none where it holds no JSON object. */
export function fieldsIn(body: Uint8Array): JsonObject {
  return objectIn(parseLoosely(decodeUtf8(body)))
}

export function noAnswer(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor sent no answer that can be read.")
}

/** Without this failure, the part of the reply in an unreadable event would be missing with no notice to the client. */
export function unreadableEvent(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor sent something unreadable in its stream.")
}

/** The failure for an unreadable last event, which must not pass for a normal end. */
export function unreadableEnd(): GatewayError {
  return new GatewayError('upstream-failed', "The model's vendor ended its stream with something unreadable.")
}
