import type { ModelTraits } from '../capabilities/limits.ts'
import type { Model } from '../catalogue/model.ts'

/** A model never changes, and an alias is a model of its own: what codecs see of it is made once. */
const known = new WeakMap<Model, ModelTraits>()

/** A model as codecs see it: what it takes and whether it has a price, and nothing of what it costs. */
export function traitsOf(model: Model, id: string): ModelTraits {
  const remembered = known.get(model)
  if (remembered?.id === id) return remembered
  const traits = makeTraits(model, id)
  known.set(model, traits)
  return traits
}

function makeTraits(model: Model, id: string): ModelTraits {
  const { rates, perImage, perVideo } = model.prices
  const isByFilm = Object.keys(perVideo).length > 0
  return {
    ...model,
    id,
    sells: (unit) => rates[unit] !== undefined,
    sellsImage: (size = '', quality = '') =>
      (perImage[`${size}/${quality}`] ?? perImage[size] ?? perImage['default']) !== undefined,
    // Prices a second and a token are for every length.
    sellsVideo: (resolution, seconds) => !isByFilm || perVideo[`${resolution}/${seconds}s`] !== undefined,
  }
}
