import { discard, joined } from '../base/bytes.ts'
import { badRequest, GatewayError } from '../base/errors.ts'
import { systemClock } from '../base/clock.ts'
import { Deadlines } from '../base/deadlines.ts'
import type { HttpRequest } from '../base/http/request.ts'
import { canonical, isObject, parseBody, type JsonLimits } from '../base/json.ts'
import type { ReadBody } from '../capabilities/ask.ts'

// A body may take ten seconds, and beyond that must arrive at a kilobyte a second: slower senders only occupy sockets.
const graceMs = 10_000
const bytesPerMsMin = 1024 / 1000

const jsonType = /^application\/json\s*(?:;|$)/i

/** Reads a JSON object, bounded in bytes (checked as they arrive), time, depth and keys. */
export async function readJsonBody(request: HttpRequest, bytesMax: number, limits: JsonLimits): Promise<ReadBody> {
  checkHeaders(request, jsonType, 'application/json')
  const raw = await readBytes(request, bytesMax)
  const bytes = raw.length
  const text = decode(raw)
  if (bytes > smallBytesMax) discard(raw)
  const body = parseBody(text, limits)
  if (!isObject(body)) throw badRequest('The body must be a JSON object.', undefined, 'invalid_type')
  return {
    body,
    files: [],
    bytes,
    // Only requests with an Idempotency-Key read this. It is canonical, because a retry may reorder the fields.
    get canonicalBytes() {
      return Buffer.from(canonical(body))
    },
  }
}

/** Gives the whole content type, because its parameters may matter. */
export function checkHeaders({ headers }: HttpRequest, wanted: RegExp, name: string): string {
  const encoding = headers.get('content-encoding')
  if (encoding !== null && encoding !== 'identity') {
    throw new GatewayError(
      'wrong-type',
      'Compressed request bodies are not accepted: send the body without Content-Encoding.',
    )
  }
  const type = headers.get('content-type')
  if (type === null || !wanted.test(type)) throw new GatewayError('wrong-type', `The Content-Type must be ${name}.`)
  return type
}

// Nearly every chat request fits into this. Larger bodies, and those of unknown length, are counted piece by piece.
const smallBytesMax = 64 * 1024

function readBytes(request: HttpRequest, bytesMax: number): Promise<Uint8Array> | Uint8Array {
  const declared = declaredLength(request, bytesMax)
  if (declared > smallBytesMax || Number.isNaN(declared)) return readPieces(request, bytesMax)
  return request.bytesAtOnce?.() ?? readSmall(request, declared)
}

/** The declared length of the body, refused at once if it is too large; NaN if the client declares none. */
function declaredLength({ headers }: HttpRequest, bytesMax: number): number {
  const declared = Number(headers.get('content-length') ?? Number.NaN)
  if (declared > bytesMax) throw tooLarge(bytesMax)
  return declared
}

function asHungUp(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  return new GatewayError('client-gone', 'The client hung up while it sent its request.', { cause: thrown })
}

const deadlines = new Deadlines(systemClock)
/** Requests whose body was not read to its end. */
const leftUnread = new WeakSet<HttpRequest>()

/** Reads the body in one go, because a reader costs as much as the rest of reading it. */
function readSmall(request: HttpRequest, declared: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const deadline = deadlines.open(() => {
      leftUnread.add(request)
      reject(tooSlow())
    })
    deadline.set(graceMs + declared / bytesPerMsMin)
    request.bytes().then(
      (bytes) => {
        deadline.clear()
        return resolve(bytes)
      },
      (thrown: unknown) => {
        deadline.clear()
        reject(asHungUp(thrown))
      },
    )
  })
}

async function readPieces(request: HttpRequest, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  try {
    await eachPiece(request, bytesMax, (piece) => chunks.push(piece))
  } catch (thrown) {
    throw asHungUp(thrown)
  }
  const whole = joined(chunks)
  if (chunks.length > 1) chunks.forEach(discard)
  return whole
}

/**
 * Passes a body on as it arrives, a small one in a single piece, bounded in bytes and time. What `take` throws is
 * thrown after the body has ended.
 */
export async function takePieces(
  request: HttpRequest,
  bytesMax: number,
  take: (piece: Uint8Array) => Promise<void>,
): Promise<number> {
  const declared = declaredLength(request, bytesMax)
  let refused: { readonly thrown: unknown } | undefined
  const takeUnlessRefused = async (piece: Uint8Array) => {
    if (refused !== undefined) return
    try {
      await take(piece)
    } catch (thrown) {
      refused = { thrown }
    }
  }
  try {
    const bytes =
      declared <= smallBytesMax
        ? await onePiece(request, declared, takeUnlessRefused)
        : await eachPiece(request, bytesMax, takeUnlessRefused)
    if (refused === undefined) return bytes
  } catch (thrown) {
    refused ??= { thrown: asHungUp(thrown) }
  }
  throw refused.thrown
}

// Eight times what a chat may send: a client that is so far beyond its limit did not exceed it by mistake.
const passedOverBytesMax = 256 * 1024 * 1024

/**
 * Reads and drops what a refused client still sends, so that it is answered only after that. Most clients go on writing
 * without reading, and take a connection that closes meanwhile for a failed one; and a proxy may send the next request
 * after half a body. False if the body did not end: its connection must then be closed.
 */
export async function passOver(request: HttpRequest): Promise<boolean> {
  if (request.bodyUsed) return !leftUnread.has(request)
  // One that waits for permission to send its body gets the refusal instead: permitting what nobody reads is a waste.
  if (request.headers.has('expect')) return request.bytesAtOnce?.() !== undefined
  try {
    await takePieces(request, passedOverBytesMax, () => Promise.resolve())
    return true
  } catch {
    return false
  }
}

async function onePiece(request: HttpRequest, declared: number, take: (piece: Uint8Array) => unknown): Promise<number> {
  const whole = await readSmall(request, declared)
  await take(whole)
  return whole.length
}

async function eachPiece(
  request: HttpRequest,
  bytesMax: number,
  take: (piece: Uint8Array) => unknown,
): Promise<number> {
  if (request.body === null) return 0
  const reader = request.body.getReader()
  const startedAt = performance.now()
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return length
      length += value.length
      if (length > bytesMax) throw tooLarge(bytesMax)
      if (performance.now() - startedAt > graceMs + length / bytesPerMsMin) throw tooSlow()
      await take(value)
    }
  } catch (thrown) {
    leftUnread.add(request)
    reader.cancel().catch(() => {})
    throw thrown
  }
}

// A byte order mark is not JSON, so the decoder keeps it for the parser to refuse.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw badRequest('The body is not valid UTF-8.', undefined, 'invalid_utf8')
  }
}

function tooLarge(bytesMax: number): GatewayError {
  return new GatewayError('too-large', `The body is larger than ${bytesMax} bytes.`)
}

function tooSlow(): GatewayError {
  return badRequest('The body arrived too slowly.', undefined, 'body_too_slow')
}
