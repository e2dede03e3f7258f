import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import {
  MaxFileSizeExceededError,
  MaxTotalSizeExceededError,
  MultipartParseError,
  MultipartParser,
  type MultipartPart,
} from '@remix-run/multipart-parser'
import { badRequest, GatewayError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { AskedFile } from '../capabilities/ask.ts'
import { checkHeaders, takePieces } from './read-body.ts'

export type Form = {
  readonly body: JsonObject
  readonly files: readonly AskedFile[]
  /** What tells two forms apart: not their bytes, since a client that tries again makes up another boundary. */
  readonly said: Uint8Array
  readonly bytes: number
}

/** Sixteen pictures and a mask, each as large as the common protocol lets a file be. */
const filesMax = 17
const fileBytesMax = 50 * 1024 * 1024
const partsMax = 48
const partHeadBytesMax = 8 * 1024
const fieldBytesMax = 64 * 1024
/** Searched for the boundary before others have their turn: pieces come with megabytes, which may be made to take long. */
const turnBytes = 256 * 1024

/** A form of text fields and files, taken apart as it comes: the bytes around the files are never all in memory. */
export async function readForm(request: Request, bytesMax: number): Promise<Form> {
  const type = checkHeaders(request, /^multipart\/form-data\s*(?:;|$)/i, 'multipart/form-data')
  const parser = new MultipartParser(boundaryOf(type), {
    maxHeaderSize: partHeadBytesMax,
    maxFileSize: fileBytesMax,
    maxParts: partsMax,
    maxTotalSize: bytesMax,
  })
  const form = new FormReader()
  try {
    const bytes = await takePieces(request, bytesMax, async (piece) => {
      for (let at = 0; at < piece.length; at += turnBytes) {
        // What follows the last boundary means nothing; the parser would take it for a mistake.
        if (isDone(parser)) return
        if (at > 0) await setImmediate()
        for (const part of parser.write(piece.subarray(at, at + turnBytes))) form.take(part)
      }
    })
    parser.finish()
    return form.end(bytes)
  } catch (thrown) {
    throw explain(thrown)
  }
}

class FormReader {
  readonly #fields = new Map<string, string>()
  readonly #files: AskedFile[] = []

  take(part: MultipartPart): void {
    const { name, mediaType = '' } = part
    if (name === undefined || name === '' || name === '__proto__') throw malformed('a part has no name')
    if (mediaType.startsWith('multipart/')) throw malformed('a part of it is a form again')
    // A file may come without a name, and some clients send pictures so; no text is of this type.
    if (part.isFile || /^image\//i.test(mediaType)) {
      if (this.#files.length === filesMax) throw malformed(`it has more than ${filesMax} files`)
      this.#files.push({ field: name, bytes: part.bytes })
      return
    }
    if (this.#fields.has(name)) throw badRequest(`Invalid '${name}': it was given twice.`, name)
    if (part.size > fieldBytesMax) {
      throw badRequest(`Invalid '${name}': a field has at most ${fieldBytesMax} bytes.`, name)
    }
    this.#fields.set(name, part.text)
  }

  end(bytes: number): Form {
    const [fields, files] = [this.#fields, this.#files]
    return {
      body: Object.fromEntries(fields),
      files,
      bytes,
      // Only requests with an Idempotency-Key look at it.
      get said() {
        const digests = files.map((file) => [file.field, createHash('sha256').update(file.bytes).digest('hex')])
        return Buffer.from(JSON.stringify([[...fields], digests]))
      },
    }
  }
}

/** 1 to 70 characters of the few that RFC 2046 allows. */
const boundaryPattern = /;\s*boundary=(?:"([\w'()+,\-./:=? ]{1,70})"|([\w'+\-.]{1,70}))\s*(?:;|$)/i

function boundaryOf(contentType: string): string {
  const found = boundaryPattern.exec(contentType)
  const boundary = found?.[1] ?? found?.[2]
  if (boundary === undefined) throw malformed('its Content-Type has no proper boundary')
  if (repeatsOf(boundary) > repeatsMax) throw malformed('its boundary repeats itself')
  return boundary
}

/**
 * The parser looks for a boundary from its last character on. Where that end is the same few characters over and over, a
 * file of just these takes as many steps a byte as there are repeats: with 70 times `a`, 40 MB were three seconds of work.
 * Clients make theirs up at random, and one of digits ends like this in none of 10^10.
 */
const repeatsMax = 10

/** How often a boundary ends with what stands between its last character and the one before that is the same. */
function repeatsOf(boundary: string): number {
  const last = boundary.length - 1
  const period = last - boundary.slice(0, last).lastIndexOf(boundary.charAt(last))
  let at = last
  while (at >= period && boundary[at] === boundary[at - period]) at--
  return (last - at + period) / period
}

function isDone(parser: MultipartParser): boolean {
  try {
    parser.finish()
    return true
  } catch {
    return false
  }
}

function explain(thrown: unknown): unknown {
  if (thrown instanceof MaxFileSizeExceededError) {
    return new GatewayError('too-large', `A file is larger than ${fileBytesMax} bytes.`)
  }
  if (thrown instanceof MaxTotalSizeExceededError) return new GatewayError('too-large', 'The form is too large.')
  if (thrown instanceof MultipartParseError) return malformed(thrown.message.toLowerCase())
  // The decoder's only complaint.
  if (thrown instanceof TypeError) return badRequest('The form is not valid UTF-8.', undefined, 'invalid_utf8')
  return thrown
}

function malformed(why: string): GatewayError {
  return badRequest(`The form cannot be read: ${why}.`, undefined, 'invalid_multipart')
}
