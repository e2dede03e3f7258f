const mark = '%PDF-'

/** Whether a file is a PDF by its first bytes. */
export function isPdf(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, mark.length)).toString('latin1') === mark
}
