import { expect, test } from 'bun:test'
import { boundLookUps } from './look-up.ts'

test('a lookup beyond the limit is refused as overloaded until another one has finished', async () => {
  const answers: PromiseWithResolvers<readonly string[]>[] = []
  const lookUp = boundLookUps(() => {
    const answer = Promise.withResolvers<readonly string[]>()
    answers.push(answer)
    return answer.promise
  }, 2)
  const first = lookUp('a.test')
  const second = lookUp('b.test')
  // The name is not at fault, because other look-ups keep it waiting, so its client may retry.
  expect(await lookUp('c.test').catch((thrown: unknown) => thrown)).toMatchObject({
    kind: 'overloaded',
    details: { retryAfterSeconds: 5 },
  })
  expect(answers.length).toBe(2)
  // A finished look-up frees its place, whether it succeeded or failed.
  answers[0]?.resolve(['192.0.2.1'])
  expect(await first).toEqual(['192.0.2.1'])
  answers[1]?.reject(new Error('ENOTFOUND'))
  expect(await second.catch(String)).toBe('Error: ENOTFOUND')
  const [third, fourth] = [lookUp('d.test'), lookUp('e.test')]
  answers[2]?.resolve([])
  answers[3]?.resolve([])
  expect(await Promise.all([third, fourth])).toEqual([[], []])
})
