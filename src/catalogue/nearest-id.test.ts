import { expect, test } from 'bun:test'
import { nearestId } from './nearest-id.ts'

const ids = ['gpt-4o', 'gpt-4o-mini', 'claude-sonnet-4-5', 'claude-sonnet-4-6']

test.each([
  ['gpt-4o-mni', 'gpt-4o-mini'],
  ['gtp-4o', 'gpt-4o'],
  ['claude-sonet-4-6', 'claude-sonnet-4-6'],
  ['claude-sonnet-4.5', 'claude-sonnet-4-5'],
  // Another number is another model.
  ['claude-sonnet-4-7', undefined],
  ['gpt-5o', undefined],
  ['gemini-4o', undefined],
])('%s is meant to be %s', (given, meant) => {
  expect(nearestId(ids, given)).toBe(meant)
})

test('what may not be named is passed over', () => {
  expect(nearestId(ids, 'gpt-4o-mni', (id) => id !== 'gpt-4o-mini')).toBeUndefined()
})
