import { expect, test } from 'bun:test'
import type { EmbeddingsAsk } from '../../capabilities/embeddings.ts'
import { writeAnswer } from './embeddings-answer.ts'

const askFor = (encoding: 'float' | 'base64', model = 'm"é') => ({ model, encoding }) as EmbeddingsAsk

// The longest and the shortest decimal forms of a number.
const awkward = [0, -0, 1, -1.17549435e-38, 3.4028235e38, 1.401298464324817e-45, -1.1234568e-6, 0.1, -123456.789]

test('embeddings are written exactly as JSON.stringify writes them', async () => {
  const vectors = Array.from({ length: 300 }, (_, at) => Float32Array.from([...awkward, at]))
  const { body } = await writeAnswer(askFor('float'), { vectors, inputTokens: 7 })
  expect(Buffer.from(body).toString('utf8')).toBe(
    JSON.stringify({
      object: 'list',
      data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: [...vector] })),
      model: 'm"é',
      usage: { prompt_tokens: 7, total_tokens: 7 },
    }),
  )
})

test.each(['float', 'base64'] as const)(
  'writing a million numbers as %s yields to the event loop',
  async (encoding) => {
    const vectors = Array.from({ length: 341 }, () => new Float32Array(3_072).fill(0.1))
    let turns = 0
    let isWritten = false
    // A timer would count too few turns: it fires at most once a millisecond, and a fast machine needs only four.
    setImmediate(function count() {
      turns++
      if (!isWritten) setImmediate(count)
    })
    const { body } = await writeAnswer(askFor(encoding), { vectors, inputTokens: 1 })
    isWritten = true
    expect(turns).toBeGreaterThan(3)
    const { data } = JSON.parse(Buffer.from(body).toString('utf8')) as { data: { embedding: string | number[] }[] }
    expect(data).toHaveLength(341)
    expect(data[340]?.embedding).toHaveLength(encoding === 'float' ? 3_072 : (3_072 * 4 * 4) / 3)
  },
)
