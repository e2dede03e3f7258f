import type { Units } from '../bill.ts'
import { composeContent, composeReasoning, countUnits } from '../compose-text.ts'
import { isFields } from '../fields.ts'
import { schemaInstance } from '../schema-instance.ts'
import { hashText, seeded, seededId } from '../seeded.ts'
import { splitTokens } from '../tokens.ts'
import type { GeminiAsk } from './ask.ts'
import { sign } from './signatures.ts'

export type FunctionCall = {
  readonly name: string
  readonly args: unknown
  readonly signature: string | undefined
  readonly tokens: number
}

/** One finished answer before it is written in any form. */
export type Candidate = {
  readonly index: number
  /** The reasoning, where it is shown. `reasoningTokens` counts it in any case. */
  readonly thoughts: readonly string[]
  readonly reasoningTokens: number
  readonly text: readonly string[]
  readonly textSignature: string | undefined
  readonly calls: readonly FunctionCall[]
  readonly finish: string
  /** All generated tokens: reasoning, what is delivered, and what is not, such as a call that the cap cut short. */
  readonly outputTokens: number
}

export type Composition = {
  readonly id: string
  readonly model: string
  /** Empty if the prompt was blocked. */
  readonly candidates: readonly Candidate[]
  /** The usage that is reported and billed once the answer is complete. */
  readonly units: Units
}

/** Decides the whole answer, which depends only on the ask and the cached tokens. */
export function compose(ask: GeminiAsk, cachedTokens: number): Composition {
  const { model } = ask.model
  const isBlocked = ask.steering.has('blocked')
  const candidates = Array.from({ length: isBlocked ? 0 : ask.candidates }, (_, index) => composeCandidate(ask, index))
  return {
    id: seededId('', hashText(model, ask.seed)),
    model: ask.steering.has('dated') ? `${model}-01-2026` : model,
    candidates,
    units: withAudioApart(countUnits(ask, candidates, cachedTokens), ask),
  }
}

/** Audio has its own price. Cached tokens are reported as text, so audio counts as not cached. */
function withAudioApart(units: Units, { counted }: GeminiAsk): Units {
  const audioInput = Math.min(counted.media.get('AUDIO') ?? 0, units.input)
  return audioInput === 0 ? units : { ...units, input: units.input - audioInput, audioInput }
}

/** Whether this finish reason withholds the answer. What was generated until then still counts. */
export function isWithheld(finish: string): boolean {
  return finish !== 'STOP' && finish !== 'MAX_TOKENS'
}

const tokensBeforeWithheld = 3

function composeCandidate(ask: GeminiAsk, index: number): Candidate {
  const cap = ask.outputTokensMax
  const reasoningTokens = Math.min(ask.thinking.tokens, cap)
  const thoughts = ask.thinking.isShown ? composeReasoning(ask, index, reasoningTokens) : []
  const left = cap - reasoningTokens
  const thought = { index, thoughts, reasoningTokens, text: [], textSignature: undefined, calls: [] }
  // Reasoning used up the whole cap: the answer is empty but still costs.
  if (left === 0) return { ...thought, finish: 'MAX_TOKENS', outputTokens: cap }

  const steered = ask.steering.has('refusal') ? 'SAFETY' : ask.steering.text('finish')
  if (steered === undefined && ask.tools.length > 0) {
    const { calls, finish, tokens } = composeCalls(ask, index, left)
    return { ...thought, calls, finish, outputTokens: reasoningTokens + tokens }
  }
  const { content, finish: end } = composeContent(ask, index, left)
  const finish = steered ?? (end === 'length' ? 'MAX_TOKENS' : 'STOP')
  const text = isWithheld(finish) ? content.slice(0, tokensBeforeWithheld) : content
  const isSigned = ask.signs === 'all' && !isWithheld(finish)
  return {
    ...thought,
    text,
    textSignature: isSigned ? sign({ kind: 'text' }, hashText(`text ${index}`, ask.seed)) : undefined,
    finish,
    outputTokens: reasoningTokens + text.length,
  }
}

type Calling = { calls: readonly FunctionCall[]; finish: string; tokens: number }

/** A call arrives complete or not at all. One that the cap cuts short is lost, but its tokens are billed. */
function composeCalls(ask: GeminiAsk, index: number, cap: number): Calling {
  const calls: FunctionCall[] = []
  let spent = 0
  for (const [at, { name, schema }] of ask.tools.entries()) {
    const seed = hashText(`call ${index} ${at} ${name}`, ask.seed)
    const made = schemaInstance(schema, seeded(seed))
    const args = isFields(made) ? made : {}
    const tokens = splitTokens(name).length + splitTokens(JSON.stringify(args)).length
    if (spent + tokens > cap) return { calls, finish: 'MAX_TOKENS', tokens: cap }
    // The vendor signs only the first of several parallel calls.
    const isSigned = at === 0 && ask.signs !== 'nothing'
    calls.push({ name, args, signature: isSigned ? sign({ kind: 'call', name, args }, seed) : undefined, tokens })
    spent += tokens
  }
  return { calls, finish: 'STOP', tokens: spent }
}
