import { expect, test } from 'bun:test'
import type { Turn } from '../capabilities/conversation.ts'
import { joinTurn, resultsFirst } from './turns.ts'

const user = (text: string): Turn => ({ role: 'user', blocks: [{ kind: 'text', text }] })
const result = { kind: 'tool-result', callId: 'c', blocks: [], isError: false } as const

function joined(...all: readonly Turn[]): Turn[] {
  const turns: Turn[] = []
  for (const turn of all) joinTurn(turns, turn)
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

test('instructions never part a call from its results, which come first in their turn', () => {
  const call: Turn = { role: 'assistant', blocks: [{ kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}' }] }
  const system: Turn = { role: 'system', blocks: [{ kind: 'text', text: 'Hurry.' }] }
  const results: Turn = { role: 'user', blocks: [{ kind: 'text', text: 'Here.' }, result] }
  expect(joined(call, system, results).map(({ role }) => role)).toEqual(['assistant', 'user', 'system'])
  expect(resultsFirst(results).blocks.map(({ kind }) => kind)).toEqual(['tool-result', 'text'])
})

// A copy of all before for each would take minutes.
test('two hundred thousand are joined as they come', () => {
  const turns: Turn[] = []
  for (let count = 0; count < 200_000; count++) joinTurn(turns, user('a'))
  const [turn] = turns
  expect(turn?.blocks).toHaveLength(200_000)
})
