import { showsReasoning } from './reasoning.ts'
import type { Units } from '../bill.ts'
import { composeContent, composeReasoning, countUnits } from '../compose-text.ts'
import { shorten } from '../prose.ts'
import { schemaInstance } from '../schema-instance.ts'
import { hashText, seeded, seededId } from '../seeded.ts'
import { splitTokens } from '../tokens.ts'
import type { ChatAsk } from './ask.ts'
import type { Tool } from './tools.ts'

export type ToolCall = {
  readonly id: string
  readonly kind: Tool['kind']
  readonly name: string
  readonly nameTokens: number
  /** The arguments, token by token. */
  readonly input: readonly string[]
}

/** One finished answer, token by token, before it is written in any form. */
export type Choice = {
  readonly index: number
  /** The reasoning, where the vendor shows it. Where it does not, `reasoningTokens` still counts it. */
  readonly reasoning: readonly string[]
  readonly reasoningTokens: number
  readonly content: readonly string[]
  readonly calls: readonly ToolCall[]
  readonly finish: 'stop' | 'length' | 'tool_calls' | 'function_call'
  readonly outputTokens: number
}

export type Composition = {
  readonly id: string
  readonly fingerprint: string
  readonly created: number
  readonly model: string
  readonly choices: readonly Choice[]
  /** The usage that is reported and billed once the answer is complete. */
  readonly units: Units
}

/** Decides the whole answer, which depends only on the ask, the cached tokens and the clock. */
export function compose(ask: ChatAsk, cachedTokens: number): Composition {
  const choices = Array.from({ length: ask.choices }, (_, index) => composeChoice(ask, index))
  const { model } = ask.model
  const isDated = ask.steering.has('dated')
  return {
    id: seededId('chatcmpl-', hashText(model, ask.seed)),
    fingerprint: `fp_${hashText(model).toString(16).padStart(8, '0')}`,
    created: Math.floor(Date.now() / 1000),
    model: isDated ? `${model}-2026-01-01` : model,
    choices,
    units: countUnits(ask, choices, cachedTokens),
  }
}

function composeChoice(ask: ChatAsk, index: number): Choice {
  const cap = ask.outputTokensMax + (ask.capsWordsAlone ? ask.reasoningTokens : 0)
  const reasoningTokens = Math.min(ask.reasoningTokens, cap)
  const reasoning = showsReasoning(ask.model) ? composeReasoning(ask, index, reasoningTokens) : []
  const thought = { index, reasoning, reasoningTokens }
  // Reasoning used up the whole cap: the answer is empty but still costs.
  if (reasoningTokens > 0 && reasoningTokens === cap) {
    return { ...thought, content: [], calls: [], finish: 'length', outputTokens: cap }
  }
  const left = cap - reasoningTokens
  if (ask.tools.length > 0) {
    const { calls, finish, tokens } = composeCalls(ask, index, left)
    return { ...thought, content: [], calls, finish, outputTokens: reasoningTokens + tokens }
  }
  const { content, finish } = composeContent(ask, index, left)
  return { ...thought, content, calls: [], finish, outputTokens: reasoningTokens + content.length }
}

type Calling = { calls: readonly ToolCall[]; finish: Choice['finish']; tokens: number }

function composeCalls(ask: ChatAsk, index: number, cap: number): Calling {
  const calls: ToolCall[] = []
  let tokens = 0
  for (const [at, tool] of ask.tools.entries()) {
    const seed = hashText(`call ${index} ${at} ${tool.name}`, ask.seed)
    const nameTokens = splitTokens(tool.name).length
    // As with the real vendor, the cap may end the answer in the middle of the arguments.
    if (tokens + nameTokens > cap) return { calls, finish: 'length', tokens }
    const text =
      tool.kind === 'custom' ? shorten(ask.userText) : JSON.stringify(schemaInstance(tool.schema, seeded(seed)))
    const whole = splitTokens(text)
    const input = whole.slice(0, cap - tokens - nameTokens)
    calls.push({ id: seededId('call_', seed), kind: tool.kind, name: tool.name, nameTokens, input })
    tokens += nameTokens + input.length
    if (input.length < whole.length) return { calls, finish: 'length', tokens }
  }
  return { calls, finish: ask.isLegacy ? 'function_call' : 'tool_calls', tokens }
}
