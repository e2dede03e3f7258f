import { isObject, type Json, type JsonObject } from '../base/json.ts'

/** What a reference inside the document points to: `#` for the root, or `#/` with a JSON pointer. */
export function resolveReference(root: JsonObject, ref: string): Json | undefined {
  if (ref !== '#' && !ref.startsWith('#/')) return undefined
  let found: Json | undefined = root
  for (const step of ref.split('/').slice(1)) {
    const key = decode(step).replaceAll('~1', '/').replaceAll('~0', '~')
    if (isObject(found)) found = Object.hasOwn(found, key) ? found[key] : undefined
    else if (Array.isArray(found)) found = (found as readonly Json[])[Number(key)]
    else return undefined
  }
  return found
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}
