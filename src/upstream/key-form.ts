import type { Vendor } from '../vendors/vendor.ts'

// A space or a line end comes with a key that was pasted, or read from a file; no header can carry it.
const headerText = /^[\x21-\x7e]+$/

/** What a key of this vendor would have to be, where this one cannot be one: every request with it would fail. */
export function faultOfKey({ keyForm }: Pick<Vendor, 'keyForm'>, key: string): string | undefined {
  if (keyForm?.pattern.test(key) === false) return keyForm.says
  return headerText.test(key) ? undefined : 'printable ASCII characters, without spaces or line breaks'
}
