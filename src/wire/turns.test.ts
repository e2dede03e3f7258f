import { expect, test } from 'bun:test'
import type { Turn } from '../capabilities/conversation.ts'
import { joinedTurns, resultsFirst } from './turns.ts'

const user = (text: string): Turn => ({ role: 'user', blocks: [{ kind: 'text', text }] })
const result = { kind: 'tool-result', callId: 'c', blocks: [], isError: false } as const

function joined(...all: readonly Turn[]): Turn[] {
  const { turns, join } = joinedTurns()
  for (const turn of all) join(turn)
  return turns
}

test('neighbours of one role are one turn', () => {
  expect(joined(user('a'), user('b'))).toEqual([
    {
      role: 'user',
      blocks: [
        { kind: 'text', text: 'a' },
        { kind: 'text', text: 'b' },
      ],
    },
  ])
})

const calls = (...ids: readonly string[]): Turn => ({
  role: 'assistant',
  blocks: ids.map((id) => ({ kind: 'tool-call', id, name: 'f', argumentsText: '{}' })),
})
const hurry = (): Turn => ({ role: 'system', blocks: [{ kind: 'text', text: 'Hurry.' }] })
const resultOf = (callId: string): Turn => ({ role: 'user', blocks: [{ ...result, callId }] })

test('instructions never part a call from its results, which come first in their turn', () => {
  const results: Turn = { role: 'user', blocks: [{ kind: 'text', text: 'Here.' }, result] }
  expect(joined(calls('c'), hurry(), results).map(({ role }) => role)).toEqual(['assistant', 'user', 'system'])
  expect(resultsFirst(results).blocks.map(({ kind }) => kind)).toEqual(['tool-result', 'text'])
})

/** Who speaks, and of a user whose results it holds; anything else that is said is a dash. */
function outline(turns: readonly Turn[]): string[] {
  return turns.map(({ role, blocks }) => {
    return `${role} ${blocks.map((block) => (block.kind === 'tool-result' ? block.callId : '-')).join('')}`
  })
}

test.each([
  ['before the first of several', [hurry(), resultOf('a'), resultOf('b')], ['user ab', 'system -']],
  ['between them', [resultOf('a'), hurry(), resultOf('b')], ['user ab', 'system -']],
  ['before words and them', [hurry(), user('So?'), resultOf('a'), resultOf('b')], ['user ab', 'system -', 'user -']],
  ['behind words and before them', [user('So?'), hurry(), resultOf('a'), resultOf('b')], ['user -ab', 'system -']],
])('results stand right behind their calls, with instructions %s', (_name, said, expected) => {
  expect(outline(joined(calls('a', 'b'), ...said))).toEqual(['assistant --', ...expected])
})

test('the results of later calls stand behind those', () => {
  const turns = joined(calls('a'), hurry(), resultOf('a'), calls('b'), hurry(), resultOf('b'))
  expect(outline(turns)).toEqual(['assistant -', 'user a', 'system -', 'assistant -', 'user b', 'system -'])
})

// A copy of all before for each would take minutes.
test('two hundred thousand are joined as they come', () => {
  const { turns, join } = joinedTurns()
  for (let count = 0; count < 200_000; count++) join(user('a'))
  const [turn] = turns
  expect(turn?.blocks).toHaveLength(200_000)
})
