import type { ModelTraits } from '../capabilities/limits.ts'
import type { Model } from '../catalogue/model.ts'

/** A model never changes, and is known by few names: what codecs see of it is made once for each. */
const known = new WeakMap<Model, Map<string, ModelTraits>>()

/** A model as codecs see it: what it takes and whether it has a price, and nothing of what it costs. */
export function traitsOf(model: Model, id: string): ModelTraits {
  const byName = known.get(model) ?? new Map<string, ModelTraits>()
  const traits = byName.get(id) ?? makeTraits(model, id)
  known.set(model, byName.set(id, traits))
  return traits
}

function makeTraits(model: Model, id: string): ModelTraits {
  const { rates, perImage } = model.prices
  return {
    ...model,
    id,
    sells: (unit) => rates[unit] !== undefined,
    sellsImage: (size = '', quality = '') =>
      (perImage[`${size}/${quality}`] ?? perImage[size] ?? perImage['default']) !== undefined,
  }
}
