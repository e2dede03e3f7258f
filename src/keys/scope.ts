import { matchesGlob } from '../base/glob.ts'

/** Whether a key may use a model. Its patterns are exact ids or globs with `*`; null is every model. */
export function allows(patterns: readonly string[] | null, model: string): boolean {
  return patterns === null || patterns.some((pattern) => matchesGlob(pattern, model))
}
