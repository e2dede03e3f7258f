import type { GatewayError } from '../base/errors.ts'

/** The common protocol's code for a conversation that is longer than the model's context. */
export const contextLengthCode = 'context_length_exceeded'

const wordings = [
  // Anthropic, Google, OpenAI and the vendors that use its protocol
  /prompt is too long|exceeds? (?:the )?context (?:window|limit)|input token count .{0,99}exceeds/i,
  /maximum context length/i,
  // xAI, Moonshot, Zhipu, MiniMax, Alibaba, SiliconFlow, Ark
  /maximum prompt length|exceeded model token limit|prompt exceeds max length|context window exceeds/i,
  /range of input length|must be less than max_seq_len|input length \d+ exceeds the maximum length/i,
  // llama.cpp, Ollama, LM Studio
  /exceeds the available context size|context size has been exceeded|exceeded max context length/i,
  /(?:exceeds|greater than|loaded with) (?:the )?context length/i,
  // vLLM, SGLang and text-generation-inference, which some vendors run
  /longer than the (?:maximum model length|model's context length)|model's context length is only/i,
  /input length .{0,99}exceeds the maximum allowed (?:input )?length/i,
  /`?inputs`? tokens \+ `?max_new_tokens`? must be/i,
  // Amazon Bedrock and GitHub Copilot, behind another gateway
  /input is too long for requested model|prompt token count of \d+ exceeds the limit/i,
]

/** Whether a vendor's words say that the conversation is too long. */
export function saysTooLong(message: string): boolean {
  return wordings.some((wording) => wording.test(message))
}

/**
 * Whether a vendor refused the request for its length. Clients then shorten the conversation, but only recognise this
 * error in their own protocol's form.
 */
export function isTooLong({ kind, message, details: { code, refusal } }: GatewayError): boolean {
  if (kind !== 'upstream-rejected') return false
  return code === contextLengthCode || saysTooLong(message) || (refusal?.body ?? '').includes(contextLengthCode)
}
