import type { Json, JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { anthropicSignature } from '../../capabilities/conversation.ts'
import { itemsIn, objectIn, textIn } from '../loose.ts'
import { kindOf, toolsIn, typeOf, unpriced } from './tools.ts'

export type PassTarget = {
  readonly upstreamModel: string
  /** Keeps the user labels of different accounts distinct at the vendor. */
  namespaced(label: string): string
}

/** The vendor's body: the client's own, with only the documented changes. Unknown fields stay. */
export function passAsk({ native, searchesMax, outputTokensMax }: ChatAsk, target: PassTarget): string {
  // A prompt that is only counted or written to the cache runs no search.
  if (outputTokensMax > 0) refuseUnpricedSearch(native, searchesMax)
  const body: Record<string, Json | undefined> = { ...native, model: target.upstreamModel }
  const metadata = objectIn(native['metadata'])
  if (typeof metadata['user_id'] === 'string') {
    body['metadata'] = { ...metadata, user_id: target.namespaced(metadata['user_id']) }
  }
  body['messages'] = withoutForeignThinking(itemsIn(native['messages']))
  return JSON.stringify(body)
}

/**
 * A conversation that began with another vendor's model contains thinking that we wrote in this protocol's form, with
 * no signature or with one marked as another vendor's. This vendor refuses such blocks, so they are not sent.
 */
function withoutForeignThinking(messages: readonly Json[]): readonly Json[] {
  if (!messages.some((message) => itemsIn(objectIn(message)['content']).some(isForeignThinking))) return messages
  return messages.flatMap((written): Json[] => {
    const message = objectIn(written)
    const blocks = itemsIn(message['content'])
    const kept = blocks.filter((block) => !isForeignThinking(block))
    if (kept.length === blocks.length) return [written]
    return kept.length === 0 ? [] : [{ ...message, content: kept }]
  })
}

function isForeignThinking(value: Json): boolean {
  const block: JsonObject = objectIn(value)
  return block['type'] === 'thinking' && anthropicSignature(textIn(block['signature'])) === undefined
}

/** The vendor would search and charge for it, so a search without a price of ours is refused. */
function refuseUnpricedSearch(body: JsonObject, searchesMax: number): void {
  if (searchesMax > 0) return
  for (const { tool, at } of toolsIn(body)) {
    const type = typeOf(tool)
    if (kindOf(type) === 'search' && tool['max_uses'] !== 0) throw unpriced(type, at)
  }
}
