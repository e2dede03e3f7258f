import { expect, test } from 'bun:test'
import { shortName } from '../short-name.ts'
import { namesIn } from './tool-names.ts'

test('a shortened tool name is mapped back to the client’s own name', () => {
  const long = `mcp__${'a'.repeat(100)}__read`
  const name = namesIn({ tools: [{ name: long }, { name: 'read' }] })
  expect([shortName(long), 'read', 'unknown'].map(name)).toEqual([long, 'read', 'unknown'])
})
