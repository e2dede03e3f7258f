import { sellsVideo, sellsImage } from '../billing/price.ts'
import type { ModelTraits } from '../capabilities/limits.ts'
import type { Model } from '../catalogue/model.ts'

/** Traits are made once per model: a model object never changes, and an alias is a model of its own. */
const known = new WeakMap<Model, ModelTraits>()

/** A model as codecs see it: what it accepts and whether it has a price, but not which price. */
export function traitsOf(model: Model, id: string): ModelTraits {
  const remembered = known.get(model)
  if (remembered?.id === id) return remembered
  const traits = makeTraits(model, id)
  known.set(model, traits)
  return traits
}

function makeTraits(model: Model, id: string): ModelTraits {
  const { prices } = model
  return {
    ...model,
    id,
    sells: (unit) => prices.rates[unit] !== undefined,
    sellsImage: (size, quality) => sellsImage({ size, quality }, prices),
    sellsVideo: (resolution, seconds) => sellsVideo({ resolution, seconds }, prices),
  }
}
