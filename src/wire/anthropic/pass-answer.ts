import { GatewayError } from '../../base/errors.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import type { ChatAnswer, ChatAsk } from '../../capabilities/chat.ts'
import { answerIn } from '../answer-body.ts'
import { countText } from '../estimate.ts'
import { modelBytes, withModel } from '../json-bytes.ts'
import { parseLoosely } from '../loose.ts'
import { readFailure } from './errors.ts'
import { wordsOnly } from './estimate.ts'
import { readUsage } from './usage.ts'

/** A whole answer of a vendor that speaks this protocol too, with `model` replaced by our id. */
export function passAnswer(ask: ChatAsk, body: Uint8Array): ChatAnswer {
  const message = readMessage(body, parseLoosely)
  return {
    usage: readUsage(message['usage']),
    estimateOutput: () => Math.max(1, countText(message['content'], wordsOnly)),
    body: withModel(body, 0, modelBytes(ask.model)),
  }
}

/** A vendor may send an error or an HTML page with status 200: an answer needs `content`. */
export function readMessage(body: Uint8Array, parse: typeof parseLoosely): JsonObject {
  const json = answerIn(body, parse)
  if (isObject(json['error'])) throw readFailure(json['error'])
  if (!Array.isArray(json['content'])) {
    throw new GatewayError('upstream-failed', "The model's vendor sent an answer without content.")
  }
  return json
}
