import { expect, test } from 'bun:test'
import { toolNameCharactersMax } from '../capabilities/conversation.ts'
import { shortName } from './short-name.ts'

const longest = 'n'.repeat(toolNameCharactersMax)
const long = `mcp__${'a'.repeat(100)}__read`

test('a name that every vendor takes stays as it is', () => {
  expect(shortName(longest)).toBe(longest)
})

test('a longer one is cut to what they take, and told from its like', () => {
  expect(shortName(`${longest}n`)).toMatch(/^n+_[0-9a-f]{8}$/)
  expect(shortName(long)).toHaveLength(toolNameCharactersMax)
  expect(shortName(long)).toStartWith('mcp__aaa')
  expect(shortName(long)).not.toBe(shortName(`${long}_all`))
})
