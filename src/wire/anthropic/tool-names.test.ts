import { expect, test } from 'bun:test'
import { toolNameCharactersMax } from '../../capabilities/conversation.ts'
import { namesIn, neutralName } from './tool-names.ts'

const longest = 'n'.repeat(toolNameCharactersMax)
const long = `mcp__${'a'.repeat(100)}__read`

test('a name that others take as well stays as it is', () => {
  expect(neutralName(longest)).toBe(longest)
})

test('a longer one is cut to what they take, and told from its like', () => {
  expect(neutralName(`${longest}n`)).toMatch(/^n+_[0-9a-f]{8}$/)
  expect(neutralName(long)).toHaveLength(toolNameCharactersMax)
  expect(neutralName(long)).toStartWith('mcp__aaa')
  expect(neutralName(long)).not.toBe(neutralName(`${long}_all`))
})

test('the client hears its own name again', () => {
  const name = namesIn({ tools: [{ name: long }, { name: 'read' }] })
  expect([neutralName(long), 'read', 'unknown'].map(name)).toEqual([long, 'read', 'unknown'])
})
