import type { Units } from '../bill.ts'
import { hashText } from '../seeded.ts'
import type { ChatAsk } from './ask.ts'
import type { Choice, Composition, ToolCall } from './compose.ts'
import { showsReasoning } from './reasoning.ts'

/** The complete answer of a call without streaming, as the vendor writes it. */
export function writeCompletion(ask: ChatAsk, composition: Composition): string {
  const { id, created, model, fingerprint, choices, units } = composition
  return JSON.stringify({
    id,
    object: 'chat.completion',
    created,
    model,
    choices: choices.map((choice) => writeChoice(ask, choice)),
    // undefined leaves the key out
    usage: ask.steering.has('nousage') ? undefined : writeUsage(units),
    service_tier: 'default',
    system_fingerprint: fingerprint,
  })
}

function writeChoice(ask: ChatAsk, { index, content, reasoning, calls, finish }: Choice): unknown {
  return {
    index,
    message: {
      role: 'assistant',
      content: calls.length > 0 ? null : content.join(''),
      refusal: null,
      annotations: [],
      reasoning_content: showsReasoning(ask.model) && reasoning.length > 0 ? reasoning.join('') : undefined,
      tool_calls: calls.length > 0 && !ask.isLegacy ? calls.map(writeCall) : undefined,
      function_call: ask.isLegacy ? calls.map(writeFunctionCall)[0] : undefined,
    },
    logprobs: ask.alternatives === undefined ? null : writeLogprobs(content, ask.alternatives),
    finish_reason: finish,
  }
}

function writeCall({ id, kind, name, input }: ToolCall): unknown {
  const text = input.join('')
  if (kind === 'custom') return { id, type: 'custom', custom: { name, input: text } }
  return { id, type: 'function', function: { name, arguments: text } }
}

function writeFunctionCall({ name, input }: ToolCall): unknown {
  return { name, arguments: input.join('') }
}

/** As at the vendor, `prompt_tokens` includes the cached tokens and `completion_tokens` the reasoning. */
export function writeUsage({ input, cachedInput, output, reasoning }: Units): unknown {
  return {
    prompt_tokens: input + cachedInput,
    completion_tokens: output,
    total_tokens: input + cachedInput + output,
    prompt_tokens_details: { cached_tokens: cachedInput, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

export function writeLogprobs(tokens: readonly string[], alternatives: number): unknown {
  return { content: tokens.map((token) => writeTokenLogprob(token, alternatives)), refusal: null }
}

export function writeTokenLogprob(token: string, alternatives: number): unknown {
  const logprob = -(hashText(token) % 1000) / 1000
  const others = Array.from({ length: alternatives }, (_, rank) =>
    rank === 0 ? likely(token, logprob) : likely(`${token}${rank}`, logprob - rank),
  )
  return { ...likely(token, logprob), top_logprobs: others }
}

function likely(token: string, logprob: number): { token: string; logprob: number; bytes: number[] } {
  return { token, logprob, bytes: [...new TextEncoder().encode(token)] }
}
