const allowed = /^[A-Za-z0-9_-]+$/
const mark = 'tpk_'

/**
 * In this protocol the id of a call may only have these characters. Ids of other vendors (`functions.f:0`) are encoded
 * in them wherever they are written, and decoded wherever they are read.
 */
export function writeCallId(id: string): string {
  if (allowed.test(id) && !id.startsWith(mark)) return id
  return mark + Buffer.from(id).toString('base64url')
}

export function readCallId(written: string): string {
  if (!written.startsWith(mark)) return written
  const id = Buffer.from(written.slice(mark.length), 'base64url').toString()
  return writeCallId(id) === written ? id : written
}
