import { expect, test } from 'bun:test'
import { toolNameCharactersMax } from '../capabilities/conversation.ts'
import { shortName } from './short-name.ts'

const longest = 'n'.repeat(toolNameCharactersMax)
const long = `mcp__${'a'.repeat(100)}__read`

test('a name that every vendor accepts stays as it is', () => {
  expect(shortName(longest)).toBe(longest)
})

test('a longer name is cut to the limit and stays distinct from similar names', () => {
  expect(shortName(`${longest}n`)).toMatch(/^n+_[0-9a-f]{8}$/)
  expect(shortName(long)).toHaveLength(toolNameCharactersMax)
  expect(shortName(long)).toStartWith('mcp__aaa')
  expect(shortName(long)).not.toBe(shortName(`${long}_all`))
})
