/** What the name of one of Google's models tells about how it is spoken to. */
export type Family = {
  /** Levels of thinking in place of budgets, and signatures that are insisted on. */
  readonly isThird: boolean
  /** Tokens of thinking that the second generation takes. */
  readonly budget: { readonly least: number; readonly most: number }
  /** Where nothing is known of its efforts: whether thinking can be switched off. */
  readonly canRest: boolean
}

/** A name without a number is an alias of the newest (`gemini-flash-latest`). */
export function familyOf(model: string): Family {
  const generation = Number(/gemini-(\d+)/.exec(model)?.[1] ?? 3)
  // The vendor's table of budgets for 2.5.
  if (model.includes('pro')) return { isThird: generation >= 3, budget: { least: 128, most: 32_768 }, canRest: false }
  const least = model.includes('flash-lite') ? 512 : 1
  return { isThird: generation >= 3, budget: { least, most: 24_576 }, canRest: generation < 3 }
}
