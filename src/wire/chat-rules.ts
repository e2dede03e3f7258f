import { badRequest, type GatewayError } from '../base/errors.ts'
import type { ChatAsk, ChatTraits, Protocol } from '../capabilities/chat.ts'
import { efforts, type Conversation } from '../capabilities/conversation.ts'

// Rules that hold in several chat protocols.

/** The tiers that a vendor sells at its plain price. */
export const plainTiers: readonly string[] = ['auto', 'default', 'standard_only']

/** Every effort, and one more word that some servers of open models know. */
const anyVendorsEfforts: readonly string[] = [...efforts, 'default']

/**
 * Where a model's efforts are unknown its vendor judges, but a word that no vendor knows is refused, because many would
 * answer and charge all the same.
 */
export function effortsOf(traits: ChatTraits): readonly string[] {
  return traits.efforts.length > 0 ? traits.efforts : anyVendorsEfforts
}

/** The most hosted searches of an answer, where the client sets no limit or a higher one. */
export const searchesMax = 5

/**
 * Refuses hosted search where no search can be written for the vendor, even if the model has a price for it: the answer
 * would be one without a search. Clients of messages are answered without, because many offer it with every request.
 */
export function refuseUnwrittenSearch({ protocol }: ChatAsk, { hostedTools }: Conversation): void {
  if (hostedTools.length > 0 && protocol !== 'anthropic') throw noHostedSearch(protocol)
}

/** Names the field in which clients of this protocol ask for hosted search. */
export function noHostedSearch(protocol: Protocol): GatewayError {
  const field = protocol === 'openai' ? 'web_search_options' : 'tools'
  return badRequest('This model has no hosted web search.', field, 'unsupported_value')
}
