import { z } from 'zod'
import { fieldError } from './issues.ts'

/**
 * Makes the check of a body that is taken as it is. The schema is compiled when the first body comes: that takes some 40 ms,
 * and from then on a good body is checked in a sixth of the time. A bad one is read again, for what is wrong with it.
 */
export function checkBy<T>(schema: z.ZodType<T, T>): (body: unknown) => T {
  let compiled: z.ZodType<T, T> | undefined
  return (body) => {
    compiled ??= z.compile(schema)
    if (compiled.validate(body)) return body
    for (let items = itemsAtFirst; ; items *= 2) {
      const shown = beginningOf(body, { items })
      if (shown !== body && compiled.validate(shown)) continue
      const parsed = schema.safeParse(shown)
      if (!parsed.success) throw fieldError(parsed.error, body)
      if (shown === body) return parsed.data
    }
  }
}

/**
 * What is wrong with a body is looked for in the first items of its lists before it is looked for in more of them: the
 * schema goes through all that it is given, and keeps a complaint about each. 300,000 empty blocks, a megabyte, took a second.
 */
const itemsAtFirst = 1_000

/** A body with only so many items in all of its lists together, and one at least in each; itself, if it has no more. */
function beginningOf(value: unknown, left: { items: number }): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (!Array.isArray(value)) return withParts(value, left)
  const kept: unknown[] = []
  for (const item of value as readonly unknown[]) {
    if (kept.length > 0 && left.items <= 0) break
    left.items--
    kept.push(beginningOf(item, left))
  }
  const isSame = kept.length === value.length && kept.every((item, index) => item === value[index])
  return isSame ? value : kept
}

function withParts(value: object, left: { items: number }): object {
  const parts = Object.entries(value)
  const kept = parts.map(([name, part]): [string, unknown] => [name, beginningOf(part, left)])
  return kept.every(([, part], index) => part === parts[index]?.[1]) ? value : Object.fromEntries(kept)
}
