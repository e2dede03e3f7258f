import { randomUUID } from 'node:crypto'
import type { Form, FormPart } from '../../vendors/vendor.ts'

export type WrittenForm = {
  readonly contentType: string
  /** The files themselves are among them, not copied: they may be large, and are sent again if a call is repeated. */
  readonly pieces: readonly Uint8Array[]
  readonly length: number
}

/** The bytes of a form, as the HTML standard writes `multipart/form-data`. */
export function writeForm(form: Form): WrittenForm {
  // Made up at random, so that nobody can put a boundary into a field or a file and so begin a part of their own.
  const boundary = `form-${randomUUID()}`
  const pieces: Uint8Array[] = []
  let text = ''
  for (const part of form) {
    text += `--${boundary}\r\n${headOf(part)}`
    if (typeof part.value === 'string') text += withLineEnds(part.value)
    else {
      pieces.push(Buffer.from(text), part.value.bytes)
      text = ''
    }
    text += '\r\n'
  }
  pieces.push(Buffer.from(`${text}--${boundary}--\r\n`))
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return { contentType: `multipart/form-data; boundary=${boundary}`, pieces, length }
}

function headOf({ field, value }: FormPart): string {
  const disposition = `Content-Disposition: form-data; name="${escaped(withLineEnds(field))}"`
  if (typeof value === 'string') return `${disposition}\r\n\r\n`
  return `${disposition}; filename="${escaped(value.name)}"\r\nContent-Type: ${value.mediaType}\r\n\r\n`
}

function withLineEnds(text: string): string {
  return text.replaceAll(/\r\n?|\n/g, '\r\n')
}

/** The names of fields are the client's: a quote or a line end in one would end its header. */
function escaped(name: string): string {
  return name.replaceAll(/["\r\n]/g, encodeURIComponent)
}
