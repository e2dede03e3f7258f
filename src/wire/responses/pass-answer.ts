import type { JsonObject } from '../../base/json.ts'
import type { ChatAnswer, ChatAsk } from '../../capabilities/chat.ts'
import { countText } from '../estimate.ts'
import { labels } from '../openai/pass-ask.ts'
import { wordsOnly } from './estimate.ts'
import { readResponse } from './read-answer.ts'
import { readUsage } from './usage.ts'

/** A whole answer of a vendor that speaks this protocol too. */
export function passAnswer(ask: ChatAsk, body: Uint8Array): ChatAnswer {
  const response = readResponse(body)
  return {
    usage: readUsage(response),
    estimateOutput: () => Math.max(1, countText(response['output'], wordsOnly)),
    body: new TextEncoder().encode(JSON.stringify(asAsked(response, ask))),
  }
}

/** A response repeats its request. Values that we changed for the vendor are replaced by the client's own. */
export function asAsked(response: JsonObject, { native, model }: ChatAsk): JsonObject {
  const told = labels.filter((label) => response[label] !== undefined)
  return { ...response, model, ...Object.fromEntries(told.map((label) => [label, native[label] ?? null])) }
}
