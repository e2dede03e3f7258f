import { estimateTokenCount } from 'tokenx'
import { isObject, type Json } from '../../base/json.ts'

/** Tokens of all text inside a value, by a tokenizer's rule of thumb. Bills use it only where the vendor gave no number. */
export function countText(value: Json | undefined): number {
  if (typeof value === 'string') {
    // An inline file is priced by what it shows, not by its base64; nothing here can see that.
    return value.startsWith('data:') ? 0 : estimateTokenCount(value)
  }
  if (Array.isArray(value)) return value.reduce((sum: number, item: Json) => sum + countText(item), 0)
  if (isObject(value)) return Object.values(value).reduce((sum: number, item) => sum + countText(item), 0)
  return 0
}
