import { expect, test } from 'bun:test'
import { readRetryAfter } from './retry-after.ts'

const now = Date.parse('2026-01-01T00:00:00Z')

test.each([
  [{}, undefined],
  [{ 'retry-after': '7' }, 7],
  [{ 'retry-after': '0.5' }, 0.5],
  [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, 30],
  [{ 'retry-after': 'Wed, 31 Dec 2025 23:59:30 GMT' }, undefined],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'retry-after-ms': '1500' }, 1.5],
  [{ 'retry-after-ms': '1500', 'retry-after': '2' }, 1.5],
  [{ 'retry-after-ms': '-1', 'retry-after': '2' }, 2],
  [{ 'retry-after-ms': 'soon' }, undefined],
  [{ 'retry-after-ms': '9'.repeat(400) }, undefined],
])('headers %j ask for a wait of %p seconds', (headers: Record<string, string>, seconds) => {
  expect(readRetryAfter((name) => headers[name] ?? null, now)).toBe(seconds as number)
})
