import { isObject, type Json } from '../base/json.ts'

/** The keywords under which schemas are nested: by name, in lists, or alone. All others hold plain values. */
const named: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions'])
const nested: ReadonlySet<string> = new Set([
  'items',
  'prefixItems',
  'anyOf',
  'oneOf',
  'allOf',
  'additionalProperties',
  'not',
])

/** The value of a keyword with the schemas in it rewritten; undefined where one of them cannot be. */
export function rewriteInner(
  keyword: string,
  value: Json,
  inside: (inner: Json) => Json | undefined,
): Json | undefined {
  if (named.has(keyword) && isObject(value)) {
    const entries = Object.entries(value).map(([name, inner]) => [name, inside(inner ?? true)] as const)
    return entries.some(([, inner]) => inner === undefined) ? undefined : Object.fromEntries(entries)
  }
  if (!nested.has(keyword)) return value
  if (!Array.isArray(value)) return inside(value)
  const list: (Json | undefined)[] = value.map(inside)
  return list.every((inner) => inner !== undefined) ? list : undefined
}
