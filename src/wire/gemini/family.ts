/** What the name of one of Google's models tells about how it is spoken to. */
export type Family = {
  /** Levels of thinking in place of budgets, and signatures that are insisted on. */
  readonly isThird: boolean
  /** Tokens of thinking that the second generation takes. */
  readonly budget: { readonly least: number; readonly most: number }
  /** Where nothing is known of its efforts: whether thinking can be switched off. */
  readonly canRest: boolean
  /** Whether it goes on from words put into its mouth; where not, it refuses contents that end with them. */
  readonly goesOn: boolean
}

// By the vendor's page of its latest models: since 3.6, and 3.5 of the smallest, none goes on from its own words.
const [lastToGoOn, lastLiteToGoOn] = [305, 304]
const newest = ['', '3', '99']

/** A name without a number is an alias of the newest (`gemini-flash-latest`). */
export function familyOf(model: string): Family {
  const [, major = '', minor = '0'] = /gemini-(\d+)(?:\.(\d+))?/.exec(model) ?? newest
  const generation = Number(major)
  const release = generation * 100 + Number(minor)
  const isLite = model.includes('flash-lite')
  const shared = { isThird: generation >= 3, goesOn: release <= (isLite ? lastLiteToGoOn : lastToGoOn) }
  // The vendor's table of budgets for 2.5.
  if (model.includes('pro')) return { ...shared, budget: { least: 128, most: 32_768 }, canRest: false }
  return { ...shared, budget: { least: isLite ? 512 : 1, most: 24_576 }, canRest: generation < 3 }
}
