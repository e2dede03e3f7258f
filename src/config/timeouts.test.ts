import { expect, test } from 'bun:test'
import { fileSchema } from './schema.ts'
import { callTimeouts, clientTimeouts, taskTimeouts } from './timeouts.ts'

const { timeouts: usual } = fileSchema.parse({})
const written = {
  ...usual,
  connectSeconds: 1,
  firstByteSeconds: 2,
  wholeAnswerSeconds: 700,
  idleSeconds: 4,
  readerSeconds: 5,
  quietSeconds: 6,
  totalSeconds: 900,
}
const shared = { connectMs: 1_000, idleMs: 4_000, totalMs: 900_000 }
const { stream, whole } = callTimeouts(written)

test('each timeout setting becomes the limit that it names', () => {
  expect(stream).toEqual({ ...shared, firstByteMs: 2_000 })
  expect(whole).toEqual({ ...shared, firstByteMs: 700_000 })
  expect(clientTimeouts(written)).toEqual({ readerMs: 5_000, totalMs: 900_000, quietMs: 6_000 })
})

test('calls of a task have shorter limits of their own, and never longer than the settings', () => {
  const within = (ms: number) => ({ ...whole, firstByteMs: ms, totalMs: ms })
  expect(taskTimeouts(whole)).toEqual({ create: within(60_000), ask: within(15_000), fetch: within(600_000) })
  const short = { firstByteMs: 7_000, totalMs: 9_000 }
  expect(taskTimeouts(short)).toEqual({ create: short, ask: short, fetch: short })
})
