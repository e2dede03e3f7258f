import type { GatewayError } from '../base/errors.ts'

/** The common protocol's code for a conversation that is longer than the model's context. */
export const contextLengthCode = 'context_length_exceeded'

// The wordings of Anthropic, Google, OpenAI and the vendors that use its protocol, xAI, Moonshot, Zhipu and Alibaba.
const words =
  /prompt is too long|exceeds? (?:the )?context (?:window|limit)|input token count .*exceeds|maximum (?:context|prompt) length|context window exceeds|exceeded model token limit|prompt exceeds max length|range of input length/i

/**
 * Whether a vendor refused the request for its length. Clients then shorten the conversation, but only recognise this
 * error in their own protocol's form.
 */
export function isTooLong({ kind, message, details: { code, refusal } }: GatewayError): boolean {
  if (kind !== 'upstream-rejected') return false
  return code === contextLengthCode || words.test(message) || (refusal?.body ?? '').includes(contextLengthCode)
}
