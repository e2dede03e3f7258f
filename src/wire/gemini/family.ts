/** What the name of a Google model tells about its request format. */
export type Family = {
  /** Generation 3 or later: thinking is set by level instead of budget, and calls must carry their signatures. */
  readonly isThirdGeneration: boolean
  /** The bounds of a thinking budget in the second generation, in tokens. */
  readonly budget: { readonly least: number; readonly most: number }
  /** Whether thinking can be switched off, for a model whose efforts are not listed. */
  readonly maySwitchThinkingOff: boolean
  /** Whether a model that thinks does so unless it is told not to. */
  readonly thinksByItself: boolean
  /** Whether it continues an assistant message that ends the conversation; otherwise it refuses such contents. */
  readonly mayContinueAssistant: boolean
  /** Whether it takes penalties on repeated words; otherwise it refuses any but 0. */
  readonly takesPenalties: boolean
}

// By the vendor's page on its latest models: from 3.6 on (flash-lite: from 3.5 on) no model continues its own words.
const [lastToGoOn, lastLiteToGoOn] = [305, 304]
// Google's models are known to take penalties up to 2.0, and to refuse them from 2.5 on.
const lastWithPenalties = 200
const newest = ['', '3', '99']

/** A name without a number is an alias of the newest model (`gemini-flash-latest`). */
export function familyOf(model: string): Family {
  const [, major = '', minor = '0'] = /gemini-(\d+)(?:\.(\d+))?/.exec(model) ?? newest
  const generation = Number(major)
  const release = generation * 100 + Number(minor)
  const isLite = model.includes('flash-lite')
  const shared = {
    isThirdGeneration: generation >= 3,
    thinksByItself: generation >= 3 || !isLite,
    mayContinueAssistant: release <= (isLite ? lastLiteToGoOn : lastToGoOn),
    takesPenalties: release <= lastWithPenalties,
  }
  // The vendor's table of budgets for 2.5.
  if (model.includes('pro')) return { ...shared, budget: { least: 128, most: 32_768 }, maySwitchThinkingOff: false }
  return { ...shared, budget: { least: isLite ? 512 : 1, most: 24_576 }, maySwitchThinkingOff: generation < 3 }
}
