import { expect, test } from 'bun:test'
import { dialects } from '../../src/vendors/compatible/dialects.ts'
import { messagesRequest } from '../../src/wire/anthropic/schema.ts'
import { chatRequest } from '../../src/wire/openai/chat-schema.ts'
import { responsesRequest } from '../../src/wire/responses/schema.ts'

const page = await Bun.file(new URL('../../docs/translation.md', import.meta.url)).text()

function sectionOf(heading: string): string {
  const section = page.split(/^## /m).find((each) => each.startsWith(heading))
  if (section === undefined) throw new Error(`no section ${heading}`)
  return section
}

/** The fields that a section names; one that ends in a star stands for all that begin with it. */
function isNamedIn(section: string): (field: string) => boolean {
  const names = [...section.matchAll(/`([^`]*)`/g)].flatMap(([, code = '']) => code.match(/[a-z_]+\*?/g) ?? [])
  const [starts, whole] = [names.filter((name) => name.endsWith('*')), new Set(names)]
  return (field) => whole.has(field) || starts.some((start) => field.startsWith(start.slice(0, -1)))
}

const passing = sectionOf('Passing through')

test.each([
  ['chat to', chatRequest],
  ['messages to', messagesRequest],
  ['responses', responsesRequest],
] as const)('docs/translation.md says what becomes of every field of requests: %s', (heading, { shape }) => {
  const isNamed = isNamedIn(passing + sectionOf(`Requests: ${heading}`))
  // These mean the same everywhere.
  const plain = new Set(['messages', 'stream'])
  expect(Object.keys(shape).filter((field) => !plain.has(field) && !isNamed(field))).toEqual([])
})

test('docs/translation.md names every vendor for which fields are left out', () => {
  const leaving = dialects.filter((each) => each.leftOut ?? each.messageLeftOut ?? each.unstoppable)
  expect(leaving.map(({ id }) => id).filter((id) => !passing.toLowerCase().includes(id))).toEqual([])
})
