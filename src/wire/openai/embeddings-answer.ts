import { setImmediate } from 'node:timers/promises'
import type { EmbeddingsAnswer, EmbeddingsAsk, Vector } from '../../capabilities/embeddings.ts'
import { toBase64 } from '../vectors.ts'

/** How many numbers are written before other requests get a turn: about 5 ms of work, measured. */
const numbersPerTurn = 32_768
/** The longest decimal form of a float32, `-0.0000011234567890123457`, with its comma. */
const numberBytesMax = 28
const frameBytesMax = 64

/**
 * The answer of the common protocol. A request can ask for six million numbers, for which a single `JSON.stringify`
 * would block all other requests for seconds, so they are written into one buffer, in turns. The buffer has room for
 * the longest form of every number, because pages of it that are never written take no memory.
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

/** All numbers are finite, so their decimal form is valid JSON. */
function writeNumbers(vector: Vector): string {
  return `[${vector.join(',')}]`
}
