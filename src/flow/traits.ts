import type { ModelTraits } from '../capabilities/limits.ts'
import type { Model } from '../catalogue/model.ts'

/** A model as codecs see it: what it takes and whether it has a price, and nothing of what it costs. */
export function traitsOf(model: Model, id: string): ModelTraits {
  const { rates, perImage } = model.prices
  return {
    ...model,
    id,
    sells: (unit) => rates[unit] !== undefined,
    sellsImage: (size = '', quality = '') =>
      (perImage[`${size}/${quality}`] ?? perImage[size] ?? perImage['default']) !== undefined,
  }
}
