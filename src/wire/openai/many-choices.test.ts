import { expect, test } from 'bun:test'
import { leastMs } from '../../../test/support/least-ms.ts'
import { passStream } from './chat-stream.ts'
import { plainAsk } from './testing.ts'

const choicesPerEvent = 15_000

/** An event of less than a megabyte, in which choices finish that nobody asked for. */
function finishesFrom(first: number): Buffer {
  const indexes = Array.from({ length: choicesPerEvent }, (_, at) => first + at)
  const choices = indexes.map((index) => ({ index, delta: {}, finish_reason: 'stop' }))
  return Buffer.from(`data: ${JSON.stringify({ id: 'c', choices })}\n\n`)
}

test('a vendor that finishes ever more choices keeps nobody busy', () => {
  const events = Array.from({ length: 8 }, (_, at) => finishesFrom(at * choicesPerEvent))
  const read = () => {
    const stream = passStream({ ...plainAsk, choices: 2 })
    for (const event of events) stream.take(event)
    expect(stream.facts.finished).toBe(true)
  }
  // Looking for each of them among all would take nearly a second.
  expect(leastMs(read, 300)).toBeLessThan(300)
})
