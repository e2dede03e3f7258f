import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import {
  MaxFileSizeExceededError,
  MultipartParseError,
  MultipartParser,
  type MultipartPart,
} from '@remix-run/multipart-parser'
import { joined } from '../base/bytes.ts'
import { badRequest, GatewayError } from '../base/errors.ts'
import type { HttpRequest } from '../base/http/request.ts'
import { canonical } from '../base/json.ts'
import type { AskedFile, ReadBody } from '../capabilities/ask.ts'
import { checkHeaders, takePieces } from './read-body.ts'

/** Sixteen images and a mask, each as large as the common protocol allows. */
const filesMax = 17
const fileBytesMax = 50 * 1024 * 1024
const partsMax = 48
const partHeadBytesMax = 8 * 1024
const fieldBytesMax = 64 * 1024
/** How much is searched for the boundary in one turn of the loop: pieces of megabytes may be crafted to take long. */
const turnBytes = 256 * 1024

/** Reads a form of text fields and files as it arrives, so that the raw body is never in memory beside its files. */
export async function readForm(request: HttpRequest, bytesMax: number): Promise<ReadBody> {
  const wanted = 'multipart/form-data, with each image as a file and every other field as text'
  const type = checkHeaders(request, /^multipart\/form-data\s*(?:;|$)/i, wanted)
  const parser = new MultipartParser(boundaryOf(type), {
    maxHeaderSize: partHeadBytesMax,
    maxFileSize: fileBytesMax,
    maxParts: partsMax,
    maxTotalSize: bytesMax, // `takePieces` refuses more before the parser does
  })
  const form = new FormReader()
  let hasBegun = false
  try {
    const bytes = await takePieces(request, bytesMax, async (piece) => {
      // Some clients, Unity's among them, begin with a line end, which the standard allows and the parser does not.
      const start = hasBegun ? 0 : lineEndsIn(piece)
      for (let at = start; at < piece.length; at += turnBytes) {
        // Bytes after the last boundary mean nothing, but the parser would report them as an error.
        if (hasBegun && isDone(parser)) return
        if (at > start) await setImmediate()
        hasBegun = true
        for (const part of parser.write(piece.subarray(at, at + turnBytes))) form.take(part)
      }
    })
    parser.finish()
    return form.end(bytes)
  } catch (thrown) {
    throw explain(thrown)
  }
}

/** How many bytes at the beginning of a piece are line ends. */
function lineEndsIn(piece: Uint8Array): number {
  const first = piece.findIndex((byte) => byte !== 13 && byte !== 10)
  return first === -1 ? piece.length : first
}

class FormReader {
  readonly #fields = new Map<string, string>()
  readonly #files: AskedFile[] = []

  take(part: MultipartPart): void {
    const { name, mediaType = '' } = part
    if (name === undefined || name === '' || name === '__proto__') throw malformed('a part has no name')
    if (mediaType.startsWith('multipart/')) throw malformed('a part of it is a form again')
    // Some clients send image files without a file name; a text field never has an image type.
    if (/^image\//i.test(mediaType) || part.isFile) {
      if (this.#files.length === filesMax) throw malformed(`it has more than ${filesMax} files`)
      this.#files.push({ field: name, bytes: joined(part.content) })
      return
    }
    if (this.#fields.has(name)) throw badRequest(`Invalid '${name}': it was given twice.`, name)
    if (part.size > fieldBytesMax) {
      throw badRequest(`Invalid '${name}': a field has at most ${fieldBytesMax} bytes.`, name)
    }
    this.#fields.set(name, part.text)
  }

  end(bytes: number): ReadBody {
    const body = Object.fromEntries(this.#fields)
    const files = this.#files
    return {
      body,
      files,
      bytes,
      // A getter, because only requests with an Idempotency-Key read it. Not the raw bytes, because a client that
      // retries makes up a new boundary and may reorder the fields. The order of images means something.
      get canonicalBytes() {
        const digests = files.map((file) => [file.field, createHash('sha256').update(file.bytes).digest('hex')])
        return Buffer.from(canonical([body, digests]))
      },
    }
  }
}

/** 1 to 70 of the characters that RFC 2046 allows. */
const boundaryPattern = /;\s*boundary=(?:"([\w'()+,\-./:=? ]{1,70})"|([\w'+\-.]{1,70}))\s*(?:;|$)/i

function boundaryOf(contentType: string): string {
  const found = boundaryPattern.exec(contentType)
  const boundary = found?.[1] ?? found?.[2]
  if (boundary === undefined) throw malformed('its Content-Type has no proper boundary')
  if (repeatsOf(boundary) > repeatsMax) throw malformed('its boundary repeats itself')
  return boundary
}

/**
 * The parser compares a boundary from its last character backwards. If the boundary ends with the same few characters
 * repeated, a file of just these takes as many steps per byte as there are repeats: with 70 times `a`, 40 MB took three
 * seconds. Clients make boundaries up at random, and fewer than one in 10^10 made of digits ends like this.
 */
const repeatsMax = 10

/** How often a boundary repeats at its end: the period is the distance of its last character's last two occurrences. */
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
  if (thrown instanceof MultipartParseError) return malformed(thrown.message.toLowerCase())
  // The text decoder throws this for invalid UTF-8, and nothing else does here.
  if (thrown instanceof TypeError) return badRequest('The form is not valid UTF-8.', undefined, 'invalid_utf8')
  return thrown
}

function malformed(why: string): GatewayError {
  return badRequest(`The form cannot be read: ${why}.`, undefined, 'invalid_multipart')
}
