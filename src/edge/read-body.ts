import { badRequest, GatewayError } from '../base/errors.ts'
import { isObject, parseBody, type JsonLimits, type JsonObject } from '../base/json.ts'

// A body may take ten seconds, and beyond that must bring a kilobyte a second: slower senders only hold sockets.
const graceMs = 10_000
const bytesPerMsMin = 1024 / 1000

/** A JSON object body, bounded in bytes as they are read, in time, in depth and in keys. */
export async function readJsonBody(
  request: Request,
  bytesMax: number,
  limits: JsonLimits,
): Promise<{ body: JsonObject; files: readonly never[]; raw: Uint8Array; bytes: number }> {
  checkHeaders(request)
  const raw = await readBytes(request, bytesMax)
  const body = parseBody(decode(raw), limits)
  if (!isObject(body)) throw badRequest('The body must be a JSON object.', undefined, 'invalid_type')
  return { body, files: [], raw, bytes: raw.length }
}

function checkHeaders({ headers }: Request): void {
  const encoding = headers.get('content-encoding')
  if (encoding !== null && encoding !== 'identity') {
    throw new GatewayError('wrong-type', 'Compressed request bodies are not accepted.')
  }
  const type = headers.get('content-type')
  if (type === null || !/^application\/json\s*(?:;|$)/i.test(type)) {
    throw new GatewayError('wrong-type', 'The Content-Type must be application/json.')
  }
}

// What nearly every chat request fits in. Larger ones, and those of unknown length, are counted piece by piece.
const smallBytesMax = 64 * 1024

async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array> {
  const declared = Number(request.headers.get('content-length') ?? Number.NaN)
  if (declared > bytesMax) throw tooLarge(bytesMax)
  try {
    return await (declared <= smallBytesMax ? readSmall(request, declared) : readPieces(request, bytesMax))
  } catch (thrown) {
    if (thrown instanceof GatewayError) throw thrown
    throw new GatewayError('client-gone', 'The client hung up while it sent its request.', { cause: thrown })
  }
}

/** Natively, and so without a look at its pieces: 20 µs less than through a reader, an eighth of a request. */
async function readSmall(request: Request, declared: number): Promise<Uint8Array> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(tooSlow()), graceMs + declared / bytesPerMsMin)
  })
  try {
    return await Promise.race([request.bytes(), late])
  } finally {
    clearTimeout(timer)
  }
}

async function readPieces(request: Request, bytesMax: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  const startedAt = performance.now()
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      length += value.length
      if (length > bytesMax) throw tooLarge(bytesMax)
      if (performance.now() - startedAt > graceMs + length / bytesPerMsMin) throw tooSlow()
      chunks.push(value)
    }
  } catch (thrown) {
    reader.cancel().catch(() => {})
    throw thrown
  }
  const [first] = chunks
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)
}

// A byte order mark is not JSON, so it is kept for the parser to refuse.
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
  return badRequest('The body came too slowly.', undefined, 'body_too_slow')
}
