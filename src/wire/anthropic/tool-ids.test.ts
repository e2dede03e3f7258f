import { expect, test } from 'bun:test'
import { readCallId, writeCallId } from './tool-ids.ts'

test.each(['toolu_01', 'call-1_A', 'functions.f:0', 'tpk_x', 'tpk_', 'é', ''])(
  '%j is written as this protocol allows, and read back as it was',
  (id) => {
    expect(writeCallId(id)).toMatch(/^[A-Za-z0-9_-]+$/)
    expect(readCallId(writeCallId(id))).toBe(id)
  },
)

test('what can be written as it is stays so', () => {
  expect(writeCallId('toolu_01')).toBe('toolu_01')
})

test.each(['toolu_01', 'dG9vbHU', 'tpk_dG9vbHU', 'tpk_!', 'tpk_x'])(
  '%j is no spelling of ours, and is what it is',
  (id) => {
    expect(readCallId(id)).toBe(id)
  },
)
