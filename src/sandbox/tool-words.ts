/** `forced` means that exactly the offered tools are called. */
export type ToolMode = 'none' | 'auto' | 'required' | 'forced'

type Picking<T> = {
  readonly offered: readonly T[]
  readonly mode: ToolMode
  /**
   * The request ends with a tool's result. The model then answers in words, because otherwise no agent loop would end.
   */
  readonly answersResult: boolean
  /** The last user text without its steering words. */
  readonly userText: string
  /** The NAME of `sandbox:tool=NAME`. */
  readonly steered: string | undefined
  /** The model may make only one call at a time. */
  readonly isAlone: boolean
}

/** The tools that the model calls, in the order offered. None means that it answers in words. */
export function pickTools<T extends { readonly name: string }>(picking: Picking<T>): readonly T[] {
  const { offered, mode, answersResult, userText, steered, isAlone } = picking
  if (mode === 'none' || answersResult) return []
  if (mode === 'forced') return offered
  const named = offered.filter((tool) => tool.name === steered)
  if (named.length > 0) return named
  const matching = matchingTools(offered, userText)
  if (matching.length > 0) return isAlone ? matching.slice(0, 1) : matching
  return mode === 'required' ? offered.slice(0, 1) : []
}

const wordLettersMin = 4

/** A tool matches when a word of its name with at least four letters occurs in the text: "weather" for getWeather. */
function matchingTools<T extends { readonly name: string }>(tools: readonly T[], text: string): readonly T[] {
  const spoken = new Set(wordsOf(text))
  return tools.filter((tool) => wordsOf(tool.name).some((word) => word.length >= wordLettersMin && spoken.has(word)))
}

function wordsOf(text: string): string[] {
  return text
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}]+/u)
}
