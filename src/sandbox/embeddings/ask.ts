import { isGiven } from '../fields.ts'
import { reportedUnits } from '../media/reported.ts'
import type { ServedAsk } from '../serve.ts'
import type { Units } from '../bill.ts'
import { readSteering, withoutSteering } from '../steering.ts'
import { splitTokens } from '../tokens.ts'
import type { EmbeddingRules } from './rules.ts'
import { embed } from './vector.ts'

/** Texts to embed, token by token, in any protocol. */
export type EmbeddingAsk = ServedAsk & {
  readonly inputs: readonly (readonly string[])[]
  readonly dimensions: number
  readonly encoding: 'float' | 'base64'
}

/** A protocol's refusals of an invalid input. */
export type InputRefusals = {
  missing(): Error
  empty(index: number): Error
  wrongType(index: number): Error
  tooMany(count: number, most: number): Error
  tooLong(index: number, tokens: number, most: number): Error
  batchTooLong(tokens: number, most: number): Error
}

/**
 * The texts of an input as tokens. A list of numbers is one text, a list of lists several. With `isCut`, text beyond
 * the model's input length is cut off, as some vendors do, instead of refused.
 */
export function readInputs(
  given: unknown,
  rules: EmbeddingRules,
  refusals: InputRefusals,
  isCut = false,
): EmbeddingAsk['inputs'] {
  if (!isGiven(given)) throw refusals.missing()
  const isOne = !Array.isArray(given) || typeof given[0] === 'number'
  const items: readonly unknown[] = isOne ? [given] : given
  if (items.length === 0) throw refusals.missing()
  if (items.length > rules.inputsMax) throw refusals.tooMany(items.length, rules.inputsMax)
  const inputs = items.map((item, index) => {
    const tokens = typeof item === 'string' ? splitTokens(item) : rules.takesTokens ? idsIn(item) : undefined
    if (tokens === undefined) throw refusals.wrongType(index)
    if (tokens.length === 0) throw refusals.empty(index)
    if (tokens.length <= rules.tokensMax) return tokens
    if (!isCut) throw refusals.tooLong(index, tokens.length, rules.tokensMax)
    return tokens.slice(0, rules.tokensMax)
  })
  const total = countAll(inputs)
  if (total > rules.batchTokensMax) throw refusals.batchTooLong(total, rules.batchTokensMax)
  return inputs
}

function idsIn(item: unknown): string[] | undefined {
  if (!Array.isArray(item)) return undefined
  return item.every((id) => Number.isInteger(id) && id >= 0) ? item.map(String) : undefined
}

const countAll = (inputs: EmbeddingAsk['inputs']): number => inputs.reduce((sum, tokens) => sum + tokens.length, 0)

/** Any of the texts may steer; the last one wins. */
export const steeringOf = (inputs: EmbeddingAsk['inputs']): ServedAsk['steering'] =>
  readSteering(...inputs.map((tokens) => tokens.join('')))

export function countUnits({ steering, inputs }: EmbeddingAsk): Units {
  return reportedUnits(steering, 'input', { input: countAll(inputs) })
}

/** The vectors in the order of the inputs. Steering words are not embedded. */
export function vectorsOf({ inputs, dimensions }: Pick<EmbeddingAsk, 'inputs' | 'dimensions'>): Float32Array[] {
  return inputs.map((tokens) => {
    const text = tokens.join('')
    const meant = text.includes('sandbox:') ? splitTokens(withoutSteering(text)) : tokens
    return embed(meant.length > 0 ? meant : tokens, dimensions)
  })
}
