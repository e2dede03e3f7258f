import { isGiven } from '../../base/json.ts'
import type { ResponsesRequest } from './schema.ts'

/** What a client wants to see beside the text of the answer. */
export type Shown = {
  /** The reasoning, in `summary`. */
  readonly wantsReasoning: boolean
  /** What has to be sent back to the vendor unchanged, in `encrypted_content`. */
  readonly wantsEncrypted: boolean
  /** How many alternatives of each token; 0 for only the chosen one. */
  readonly logprobs: number | undefined
}

export function shownOf({ reasoning, include, top_logprobs: count }: ResponsesRequest): Shown {
  const least = include?.includes('message.output_text.logprobs') === true ? 0 : undefined
  return {
    wantsReasoning: isGiven(reasoning?.summary) || isGiven(reasoning?.generate_summary),
    wantsEncrypted: include?.includes('reasoning.encrypted_content') ?? false,
    logprobs: isGiven(count) && count > 0 ? count : least,
  }
}
