import type { Json, JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { anthropicSignature } from '../../capabilities/conversation.ts'
import { hasSignature, withoutSignature } from '../google-signature.ts'
import { itemsIn, objectIn, textIn } from '../loose.ts'
import { remembersReasoning } from '../past-reasoning.ts'
import { kindOf, toolsIn, unpriced } from './tools.ts'

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
  body['messages'] = withoutForeignSignatures(itemsIn(native['messages']), target)
  return JSON.stringify(body)
}

/**
 * A conversation that began with another vendor's model contains thinking that we wrote in this protocol's form, with
 * no signature or with one marked as another vendor's, and calls with Google's signature. This vendor refuses both, so
 * they are not sent. Other vendors that serve this protocol do not sign their thinking, and some require it back.
 */
function withoutForeignSignatures(messages: readonly Json[], { upstreamModel }: PassTarget): readonly Json[] {
  const takesUnsigned = remembersReasoning.test(upstreamModel)
  const isForeignThinking = (block: Json): boolean => {
    const { type, signature } = objectIn(block)
    if (type !== 'thinking' || (takesUnsigned && textIn(signature) === '')) return false
    return anthropicSignature(textIn(signature)) === undefined
  }
  const isForeign = (block: Json): boolean => isForeignThinking(block) || isForeignCall(block)
  if (!messages.some((message) => itemsIn(objectIn(message)['content']).some(isForeign))) return messages
  return messages.flatMap((written): Json[] => {
    const message = objectIn(written)
    const blocks = itemsIn(message['content'])
    if (!blocks.some(isForeign)) return [written]
    const kept = blocks.flatMap((block) => {
      if (isForeignThinking(block)) return []
      return isForeignCall(block) ? [withoutSignature(block)] : [block]
    })
    return kept.length === 0 ? [] : [{ ...message, content: kept }]
  })
}

function isForeignCall(block: Json): boolean {
  return objectIn(block)['type'] === 'tool_use' && hasSignature(block)
}

/** The vendor would search and charge for it, so a search without a price of ours is refused. */
function refuseUnpricedSearch(body: JsonObject, searchesMax: number): void {
  if (searchesMax > 0) return
  for (const placed of toolsIn(body)) {
    if (kindOf(placed.tool) === 'search' && placed.tool['max_uses'] !== 0) throw unpriced(placed)
  }
}
