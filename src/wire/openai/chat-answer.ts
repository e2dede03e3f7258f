import { GatewayError } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { ChatAnswer, ChatAsk } from '../../capabilities/chat.ts'
import { answerIn } from '../answer-body.ts'
import { countText } from '../estimate.ts'
import { modelBytes, withModel } from '../json-bytes.ts'
import { itemsIn, objectIn, objectsIn } from '../loose.ts'
import { failureOf } from './errors.ts'
import { wordsOnly } from './estimate.ts'
import { readUsage } from './usage.ts'

/** A whole answer of a vendor that speaks this protocol too, with `model` replaced by our id. */
export function passAnswer(ask: ChatAsk, body: Uint8Array): ChatAnswer {
  const { json, choices } = readChoices(body)
  return {
    usage: readUsage(json['usage']),
    estimateOutput: () => Math.max(1, countText(choices, wordsOnly)),
    images: imagesIn(choices, 'message'),
    body: withModel(body, 0, modelBytes(ask.model)),
  }
}

/** Images come as relays send them: in a list beside an empty text. */
export function imagesIn(choices: Json | undefined, place: 'message' | 'delta'): number {
  let count = 0
  for (const choice of itemsIn(choices)) {
    const { images } = objectIn(objectIn(choice)[place])
    if (images !== undefined) count += objectsIn(images).length
  }
  return count
}

/** A vendor may send an error or an HTML page with status 200: an answer needs `choices`. */
export function readChoices(body: Uint8Array): { json: JsonObject; choices: readonly Json[] } {
  const json = answerIn(body)
  const failure = failureOf(json)
  if (failure !== undefined) throw failure
  const { choices } = json
  if (!Array.isArray(choices) || objectsIn(choices).length === 0) {
    throw new GatewayError('upstream-failed', "The model's vendor sent an answer without choices.")
  }
  return { json, choices }
}
