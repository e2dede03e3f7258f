import { describe, expect, test } from 'bun:test'
import { thrownBy } from '../../test/support/thrown.ts'
import { readJsonBody, takePieces } from './read-body.ts'

const limits = { depthMax: 10, keysMax: 100 }
// The second size is beyond what is read in one piece.
const sizes = [100, 100_000] as const

type Pieces = { pulled: number; body: ReadableStream<Uint8Array> }

/** A body that counts how often it is asked for more, and may break off. */
function inPieces(bytes: Uint8Array, ends: 'whole' | 'broken' = 'whole'): Pieces {
  const pieces: Pieces = {
    pulled: 0,
    body: new ReadableStream(
      {
        pull(controller) {
          pieces.pulled++
          const at = (pieces.pulled - 1) * 1_000
          if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + 1_000))
          else if (ends === 'whole') controller.close()
          else controller.error(new Error('hung up'))
        },
      },
      { highWaterMark: 0 },
    ),
  }
  return pieces
}

function ask(body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>, declared?: number): Request {
  const length = declared === undefined ? {} : { 'content-length': String(declared) }
  return new Request('http://gateway.test/', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...length },
    body,
  })
}

/** A JSON object of this many bytes. */
const objectOf = (bytes: number) => new TextEncoder().encode(JSON.stringify({ a: 'x'.repeat(bytes - 8) }))

describe.each(sizes)('a body of %d bytes', (size) => {
  const bytes = objectOf(size)

  test('a body of the largest allowed size is read, with or without a declared length', async () => {
    expect(bytes).toHaveLength(size)
    for (const request of [ask(bytes, size), ask(inPieces(bytes).body)]) {
      expect(await readJsonBody(request, size, limits)).toMatchObject({ bytes: size, body: { a: expect.any(String) } })
    }
    expect(await takePieces(ask(inPieces(bytes).body), size, async () => {})).toBe(size)
  })

  test('a body that is a byte too large is refused', async () => {
    for (const request of [ask(bytes, size), ask(inPieces(bytes).body)]) {
      expect(await thrownBy(readJsonBody(request, size - 1, limits))).toMatchObject({ kind: 'too-large' })
    }
    expect(await thrownBy(takePieces(ask(inPieces(bytes).body), size - 1, async () => {}))).toMatchObject({
      kind: 'too-large',
    })
  })

  test('a body with a declared length that is too large is not read at all', async () => {
    for (const read of [
      (request: Request) => readJsonBody(request, size - 1, limits),
      (request: Request) => takePieces(request, size - 1, async () => {}),
    ]) {
      const pieces = inPieces(bytes)
      expect(await thrownBy(read(ask(pieces.body, size)))).toMatchObject({ kind: 'too-large' })
      expect(pieces.pulled).toBe(0)
    }
  })

  test('a body whose client hangs up fails as client-gone', async () => {
    expect(await thrownBy(readJsonBody(ask(inPieces(bytes, 'broken').body), size, limits))).toMatchObject({
      kind: 'client-gone',
    })
    expect(await thrownBy(takePieces(ask(inPieces(bytes, 'broken').body), size, async () => {}))).toMatchObject({
      kind: 'client-gone',
    })
  })
})

test('an error thrown while the pieces are taken is passed on unchanged', async () => {
  const own = new Error('no room')
  const taken = takePieces(ask(inPieces(objectOf(100)).body), 1_000, () => Promise.reject(own))
  expect(await taken.catch((thrown: unknown) => thrown)).toBe(own)
})
