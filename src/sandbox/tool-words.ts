const wordLettersMin = 4

/** A tool fits when a word of its name, four letters or longer, stands in the text: "weather" for getWeather. */
export function matchingTools<T extends { readonly name: string }>(tools: readonly T[], text: string): readonly T[] {
  const spoken = new Set(wordsOf(text))
  return tools.filter((tool) => wordsOf(tool.name).some((word) => word.length >= wordLettersMin && spoken.has(word)))
}

function wordsOf(text: string): string[] {
  return text
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}]+/u)
}
