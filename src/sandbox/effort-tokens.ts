import { ownIn } from './fields.ts'

/** Different enough to tell efforts apart, few enough for short tests. */
const tokensByEffort: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 8,
  low: 16,
  medium: 64,
  high: 128,
  xhigh: 256,
  max: 512,
}

/** The reasoning tokens of an effort. A caller may name any where the vendor does not check it. */
export function tokensFor(effort: string): number {
  return ownIn(tokensByEffort, effort) ?? 64
}
