import type { GatewayError } from '../../base/errors.ts'
import { asDouble, isGiven, type Json } from '../../base/json.ts'
import type { EmbeddingInput } from '../../capabilities/embeddings.ts'
import { invalid, missing } from '../issues.ts'

/** The limit of the common protocol's own vendor. */
export const inputsMax = 2_048
/** A million tokens, given as numbers, is more than any vendor takes in one call. */
const tokensMax = 1_000_000

/**
 * Reads the inputs of a request in plain loops. A schema would try each kind of list on each of a million items and
 * keep an issue for every one, so an attacker could cost us half a second per request.
 */
export function readInputs(input: Json | undefined, inputTokensMax: number): EmbeddingInput[] {
  if (!isGiven(input)) throw missing('input')
  if (typeof input === 'string') return [readText(input, 'input')]
  if (!Array.isArray(input)) throw invalid('input', 'expected a text, or a list of texts or tokens', 'invalid_type')
  const items: readonly Json[] = input
  const [first] = items
  if (first === undefined) throw invalid('input', 'there is nothing to embed')
  const isOne = typeof asDouble(first) === 'number'
  if (isOne) return [readTokens(items, 'input', inputTokensMax)]
  if (items.length > inputsMax) throw tooLong(inputsMax, items.length)
  const tokens = items.reduce((sum: number, item) => sum + (Array.isArray(item) ? item.length : 0), 0)
  if (tokens > tokensMax) throw tooLong(tokensMax, tokens)
  const isTokens = Array.isArray(first)
  return items.map((item, index) => {
    const param = `input[${index}]`
    if (!isTokens && typeof item === 'string') return readText(item, param)
    if (isTokens && Array.isArray(item)) return readTokens(item, param, inputTokensMax)
    throw invalid(param, isTokens ? 'expected a list of tokens' : 'expected a text', 'invalid_type')
  })
}

function readText(text: string, param: string): string {
  if (text === '') throw invalid(param, 'it is empty')
  return text
}

/** The number of tokens is known, so an input beyond the model's limit is refused here, at no cost. */
function readTokens(items: readonly Json[], param: string, inputTokensMax: number): readonly number[] {
  if (items.length > tokensMax) throw tooLong(tokensMax, items.length)
  if (items.length === 0) throw invalid(param, 'it is empty')
  for (let at = 0; at < items.length; at++) {
    if (!isToken(items[at])) throw notToken(items[at], `${param}[${at}]`)
  }
  if (items.length > inputTokensMax) {
    throw invalid(param, `maximum input length is ${inputTokensMax} tokens, but got ${items.length}`)
  }
  return items as readonly number[]
}

function isToken(item: Json | undefined): boolean {
  return typeof item === 'number' && item >= 0 && Number.isSafeInteger(item)
}

function notToken(item: Json | undefined, param: string): GatewayError {
  // A number that a double cannot hold comes as its own text.
  const value = asDouble(item)
  if (typeof value !== 'number') return invalid(param, 'expected a token, which is a whole number', 'invalid_type')
  if (value > Number.MAX_SAFE_INTEGER) return invalid(param, `a token is at most ${Number.MAX_SAFE_INTEGER}`)
  if (value < 0) return invalid(param, 'a token is at least 0')
  return invalid(param, 'expected a whole number', 'invalid_type')
}

function tooLong(most: number, length: number): GatewayError {
  return invalid('input', `array too long. Expected at most ${most} items, but got ${length}`, 'array_above_max_length')
}
