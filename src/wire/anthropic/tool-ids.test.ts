import { expect, test } from 'bun:test'
import { readCallId, writeCallId } from './tool-ids.ts'

test.each(['toolu_01', 'call-1_A', 'functions.f:0', 'tpk_x', 'tpk_', 'é', ''])(
  'the call id %j is written in the protocol’s alphabet and read back unchanged',
  (id) => {
    expect(writeCallId(id)).toMatch(/^[A-Za-z0-9_-]+$/)
    expect(readCallId(writeCallId(id))).toBe(id)
  },
)

test('a call id that is already valid is written unchanged', () => {
  expect(writeCallId('toolu_01')).toBe('toolu_01')
})

test.each(['toolu_01', 'dG9vbHU', 'tpk_dG9vbHU', 'tpk_!', 'tpk_x'])(
  'the call id %j is not one that we encoded and is read unchanged',
  (id) => {
    expect(readCallId(id)).toBe(id)
  },
)
