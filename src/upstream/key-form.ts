import type { Vendor } from '../vendors/vendor.ts'

// A key that was pasted or read from a file may come with a space or a line end, which no header can carry.
const headerText = /^[\x21-\x7e]+$/
// A shell takes quotes off; Docker's --env-file and some supervisors leave them on, and the vendor then gets them too.
const inQuotes = /^(["']).*\1$/

/** What a key of this vendor has to be, if this one is not: every request would fail. Undefined for a good key. */
export function faultOfKey({ keyForm }: Pick<Vendor, 'keyForm'>, key: string): string | undefined {
  if (inQuotes.test(key)) return 'written without quotes around it: here they are part of the key'
  if (keyForm?.pattern.test(key) === false) return keyForm.says
  return headerText.test(key) ? undefined : 'printable ASCII characters, without spaces or line breaks'
}
