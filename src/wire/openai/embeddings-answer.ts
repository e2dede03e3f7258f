import { setImmediate } from 'node:timers/promises'
import type { EmbeddingsAnswer, EmbeddingsAsk, Vector } from '../../capabilities/embeddings.ts'
import { toBase64 } from '../vectors.ts'

/** Numbers to write before others have their turn: some 5 ms, measured. */
const numbersPerTurn = 32_768
/** The longest that a float32 comes to in decimals, `-0.0000011234567890123457`, with its comma. */
const numberBytesMax = 28
const frameBytesMax = 64

/**
 * The answer of the common protocol. One request can ask for six million numbers, of which a single `JSON.stringify` makes
 * everybody else wait for seconds: they are written into one buffer, in turns. A page of it that is not reached is not
 * taken from the machine, so it has room for the longest that each number can be.
 */
export async function writeAnswer({ model, encoding }: EmbeddingsAsk, { vectors, inputTokens }: EmbeddingsAnswer) {
  const usage = { prompt_tokens: inputTokens, total_tokens: inputTokens }
  const [head, tail] = [
    '{"object":"list","data":[',
    `],"model":${JSON.stringify(model)},"usage":${JSON.stringify(usage)}}`,
  ]
  const write = encoding === 'base64' ? writeBase64 : writeNumbers
  const numbers = vectors.reduce((sum, { length }) => sum + length, 0)
  const vectorsBytesMax = numbers * numberBytesMax + vectors.length * frameBytesMax
  const body = Buffer.allocUnsafe(head.length + vectorsBytesMax + Buffer.byteLength(tail))
  let at = body.write(head, 'latin1')
  let untilTurn = numbersPerTurn
  for (const [index, vector] of vectors.entries()) {
    const comma = index === 0 ? '' : ','
    at += body.write(`${comma}{"object":"embedding","index":${index},"embedding":`, at, 'latin1')
    at += body.write(write(vector), at, 'latin1')
    at += body.write('}', at, 'latin1')
    untilTurn -= vector.length
    if (untilTurn > 0) continue
    untilTurn = numbersPerTurn
    await setImmediate()
  }
  at += body.write(tail, at)
  return { body: body.subarray(0, at), contentType: 'application/json' }
}

function writeBase64(vector: Vector): string {
  return `"${toBase64(vector)}"`
}

/** Every number of it is finite, so its decimals are JSON. */
function writeNumbers(vector: Vector): string {
  return `[${vector.join(',')}]`
}
