import type { Units } from './bill.ts'
import { shorten, writeProse } from './prose.ts'
import { schemaInstance } from './schema-instance.ts'
import { hashText, seeded } from './seeded.ts'
import type { Steering } from './steering.ts'
import { splitTokens } from './tokens.ts'

/** What determines the words of an answer in every protocol. */
export type TextAsk = {
  readonly seed: number
  readonly steering: Steering
  /** The last user text without its steering words. */
  readonly userText: string
  readonly stop: readonly string[]
  readonly format: { readonly type: 'text' | 'object' | 'schema' | 'enum'; readonly schema?: unknown }
  readonly wordsMin: number
}

/** Generated words beyond the quote: 20 to 60 tokens together, unless a verbosity is given. */
export function wordsFor(verbosity?: unknown): number {
  if (verbosity === 'low') return 4
  return verbosity === 'high' ? 80 : 18
}

type Content = { readonly content: readonly string[]; readonly finish: 'stop' | 'length'; readonly stoppedBy?: string }

/** Reasoning text of exactly `tokens` tokens. */
export function composeReasoning({ seed }: TextAsk, index: number, tokens: number): readonly string[] {
  if (tokens === 0) return []
  const random = seeded(hashText(`thoughts ${index}`, seed))
  return splitTokens(writeProse({ random, quoted: '', wordsMin: tokens, unicode: false }), tokens)
}

/** The answer token by token, ending at the cap or before the first stop sequence. */
export function composeContent(ask: TextAsk, index: number, cap: number): Content {
  const natural = naturalTokens(ask, index, cap)
  const isCapped = natural.length > cap
  const content = isCapped ? natural.slice(0, cap) : natural
  if (ask.stop.length > 0) {
    const text = content.join('')
    const found = ask.stop.map((stop) => ({ stop, at: text.indexOf(stop) })).filter(({ at }) => at >= 0)
    const first = found.toSorted((a, b) => a.at - b.at)[0]
    if (first) return { content: splitTokens(text.slice(0, first.at)), finish: 'stop', stoppedBy: first.stop }
  }
  return { content, finish: isCapped ? 'length' : 'stop' }
}

/** What the model would say without a cap. One token beyond the cap is enough to know that the answer was cut. */
function naturalTokens(ask: TextAsk, index: number, cap: number): readonly string[] {
  const { steering, format } = ask
  const random = seeded(hashText(`choice ${index}`, ask.seed))
  if (format.type === 'schema') return splitTokens(JSON.stringify(schemaInstance(format.schema, random)), cap + 1)
  // One of the schema's values, without JSON's quotes.
  if (format.type === 'enum') return splitTokens(String(schemaInstance(format.schema, random)), cap + 1)
  const exact = steering.number('tokens')
  const wanted = exact === undefined ? ask.wordsMin : Math.min(exact, cap + 1)
  const quoted = shorten(ask.userText)
  const prose = writeProse({ random, quoted, wordsMin: wanted, unicode: steering.has('unicode') })
  if (format.type === 'object') return splitTokens(JSON.stringify({ answer: prose, sandbox: true }), cap + 1)
  const tokens = splitTokens(prose, Math.min(exact ?? Infinity, cap + 1))
  const big = steering.number('big')
  // To the simulator's tokenizer a run of one repeated character is one token, whatever its length.
  return big === undefined ? tokens : ['='.repeat(big), ...tokens]
}

type Counted = { readonly steering: Steering; readonly promptTokens: number }
type Made = { readonly outputTokens: number; readonly reasoningTokens: number }

/** The usage that is reported and billed once these answers are complete. */
export function countUnits(ask: Counted, answers: readonly Made[], cachedTokens: number): Units {
  if (ask.steering.has('zero')) return { input: 0, cachedInput: 0, output: 0, reasoning: 0 }
  const cachedInput = Math.min(cachedTokens, ask.promptTokens)
  const output = answers.reduce((sum, answer) => sum + answer.outputTokens, 0)
  const reasoning = answers.reduce((sum, answer) => sum + answer.reasoningTokens, 0)
  const reported = ask.steering.number('usage')
  return {
    input: ask.promptTokens - cachedInput,
    cachedInput,
    output: reported ?? output,
    reasoning: reported === undefined ? reasoning : Math.min(reasoning, Math.max(0, reported)),
  }
}
