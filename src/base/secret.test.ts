import { expect, test } from 'bun:test'
import { labelBy } from './secret.ts'

test('a label is computed once per text, except for texts too long to keep', () => {
  const made: number[] = []
  const label = labelBy((text) => {
    made.push(text.length)
    return Buffer.from(text.slice(0, 8))
  })
  const long = 'x'.repeat(1024 * 1024)
  for (const text of ['acc_1/ann', 'acc_1/ann', 'acc_2/ann', long, long]) label(text)
  expect(made).toEqual([9, 9, long.length, long.length])
})
