import type { GatewayError } from '../base/errors.ts'

/** What the common protocol calls a conversation that is longer than its model reads. */
export const tooLong = 'context_length_exceeded'

// As Anthropic, Google, OpenAI and those who took over its protocol, xAI, Moonshot, Zhipu and Alibaba say it.
const words =
  /prompt is too long|exceeds? (?:the )?context (?:window|limit)|input token count .*exceeds|maximum (?:context|prompt) length|context window exceeds|exceeded model token limit|prompt exceeds max length|range of input length/i

/** Whether a vendor refused it for its length. Clients shorten what they sent then, and know it by their own protocol alone. */
export function isTooLong({ kind, message, details: { code, refusal } }: GatewayError): boolean {
  if (kind !== 'upstream-rejected') return false
  return code === tooLong || words.test(message) || (refusal?.body ?? '').includes(tooLong)
}
