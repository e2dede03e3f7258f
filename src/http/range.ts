/** The part of a body that is asked for: from one byte up to, but not including, another. */
export type Range = { readonly from: number; readonly to: number }

const one = /^bytes=(\d{0,15})-(\d{0,15})$/

/**
 * Reads a Range header (RFC 9110, section 14). Several ranges at once, other units and malformed values are answered
 * with the whole, as the RFC allows; a range beyond the end cannot be answered.
 */
export function readRange(header: string | null, bytes: number): Range | 'whole' | 'beyond' {
  const [, first, last] = (header === null ? null : one.exec(header.trim())) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return 'whole'
  if (first === '') {
    const suffix = Math.min(Number(last), bytes)
    return suffix === 0 ? 'beyond' : { from: bytes - suffix, to: bytes }
  }
  const from = Number(first)
  if (last !== '' && Number(last) < from) return 'whole'
  if (from >= bytes) return 'beyond'
  return { from, to: last === '' ? bytes : Math.min(Number(last) + 1, bytes) }
}
