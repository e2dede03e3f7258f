import type { Units } from '../bill.ts'
import { composeContent, composeThoughts, countUnits } from '../compose-text.ts'
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

/** One finished answer before anything is written. */
export type Candidate = {
  readonly index: number
  /** The thinking where it is shown; `reasoningTokens` counts it in any case. */
  readonly thoughts: readonly string[]
  readonly reasoningTokens: number
  readonly text: readonly string[]
  readonly textSignature: string | undefined
  readonly calls: readonly FunctionCall[]
  readonly finish: string
  /** Everything generated: the thinking, what is delivered, and what is not, as a call that a cap cut short. */
  readonly outputTokens: number
}

export type Composition = {
  readonly id: string
  readonly model: string
  /** None when the prompt was blocked. */
  readonly candidates: readonly Candidate[]
  /** What is reported and billed once the answer is complete. */
  readonly units: Units
}

/** Decides the whole answer. Nothing here depends on more than the ask and the cached tokens. */
export function compose(ask: GeminiAsk, cachedTokens: number): Composition {
  const { model } = ask.model
  const isBlocked = ask.steering.has('blocked')
  const candidates = Array.from({ length: isBlocked ? 0 : ask.candidates }, (_, index) => composeCandidate(ask, index))
  return {
    id: seededId('', hashText(model, ask.seed)),
    model: ask.steering.has('dated') ? `${model}-01-2026` : model,
    candidates,
    units: withSoundApart(countUnits(ask, candidates, cachedTokens), ask),
  }
}

/** Sound has a price of its own. What was read from the cache is told as text, so sound is what was not. */
function withSoundApart(units: Units, { counted }: GeminiAsk): Units {
  const audioInput = Math.min(counted.media.get('AUDIO') ?? 0, units.input)
  return audioInput === 0 ? units : { ...units, input: units.input - audioInput, audioInput }
}

/** Ends that keep the answer back; what was generated until then still counts. */
export function isWithheld(finish: string): boolean {
  return finish !== 'STOP' && finish !== 'MAX_TOKENS'
}

const tokensBeforeWithheld = 3

function composeCandidate(ask: GeminiAsk, index: number): Candidate {
  const cap = ask.outputTokensMax
  const reasoningTokens = Math.min(ask.thinking.tokens, cap)
  const thoughts = ask.thinking.isShown ? composeThoughts(ask, index, reasoningTokens) : []
  const left = cap - reasoningTokens
  const thought = { index, thoughts, reasoningTokens, text: [], textSignature: undefined, calls: [] }
  // The budget went into thinking: an empty answer that still costs.
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

/** A call arrives whole or not at all: one that the cap cuts short is lost, and its tokens with it. */
function composeCalls(ask: GeminiAsk, index: number, cap: number): Calling {
  const calls: FunctionCall[] = []
  let spent = 0
  for (const [at, { name, schema }] of ask.tools.entries()) {
    const seed = hashText(`call ${index} ${at} ${name}`, ask.seed)
    const made = schemaInstance(schema, seeded(seed))
    const args = isFields(made) ? made : {}
    const tokens = splitTokens(name).length + splitTokens(JSON.stringify(args)).length
    if (spent + tokens > cap) return { calls, finish: 'MAX_TOKENS', tokens: cap }
    // Of calls side by side the vendor signs the first alone.
    const isSigned = at === 0 && ask.signs !== 'nothing'
    calls.push({ name, args, signature: isSigned ? sign({ kind: 'call', name, args }, seed) : undefined, tokens })
    spent += tokens
  }
  return { calls, finish: 'STOP', tokens: spent }
}
