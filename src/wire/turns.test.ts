import { expect, test } from 'bun:test'
import type { Turn, UserBlock } from '../capabilities/conversation.ts'
import { arrangeTurns } from './turns.ts'

const user = (text: string): Turn => ({ role: 'user', blocks: [{ kind: 'text', text }] })
const result = { kind: 'tool-result', callId: 'c', blocks: [], isError: false } as const

test('adjacent turns of one role are joined into one', () => {
  expect(arrangeTurns([user('a'), user('b')])).toEqual([
    {
      role: 'user',
      blocks: [
        { kind: 'text', text: 'a' },
        { kind: 'text', text: 'b' },
      ],
    },
  ])
})

test('texts of separate assistant messages are marked as apart, texts of one message are not', () => {
  const cut: Turn = { role: 'assistant', blocks: ['b', 'c'].map((text) => ({ kind: 'text', text })) }
  const [turn] = arrangeTurns([words('a'), cut])
  expect(turn?.blocks).toEqual([
    { kind: 'text', text: 'a' },
    { kind: 'text', text: 'b', isApart: true },
    { kind: 'text', text: 'c' },
  ])
})

const calls = (...ids: readonly string[]): Turn => ({
  role: 'assistant',
  blocks: ids.map((id) => ({ kind: 'tool-call', id, name: 'f', argumentsText: '{}' })),
})
const hurry = (): Turn => ({ role: 'system', blocks: [{ kind: 'text', text: 'Hurry.' }] })
const resultOf = (callId: string): Turn => ({ role: 'user', blocks: [{ ...result, callId }] })

/** Each turn's role with the names of its calls or results; any other block is a dash. */
function outline(...said: readonly Turn[]): string[] {
  return arrangeTurns(said).map(({ role, blocks }) => `${role} ${blocks.map(named).join('')}`)
}

function named(block: Turn['blocks'][number]): string {
  return block.kind === 'tool-result' ? block.callId : block.kind === 'tool-call' ? block.id : '-'
}

const words = (text = 'Well.'): Turn => ({ role: 'assistant', blocks: [{ kind: 'text', text }] })
const both: Turn = {
  role: 'user',
  blocks: [
    { kind: 'text', text: 'Here.' },
    { ...result, callId: 'a' },
  ],
}

test.each([
  ['before the first result', [hurry(), resultOf('a'), resultOf('b')], ['user ab', 'system -']],
  ['between the results', [resultOf('a'), hurry(), resultOf('b')], ['user ab', 'system -']],
  ['before text and results', [hurry(), user('So?'), resultOf('a'), resultOf('b')], ['user ab', 'system -', 'user -']],
  ['after text and before results', [user('So?'), hurry(), resultOf('a'), resultOf('b')], ['user ab-', 'system -']],
  ['in the same message', [both, hurry(), resultOf('b')], ['user ab-', 'system -']],
])('results come right after their calls, before other blocks, with instructions %s', (_name, said, expected) => {
  expect(outline(calls('a', 'b'), ...said)).toEqual(['assistant ab', ...expected])
})

test.each([
  ['instructions', hurry(), ['assistant ab', 'user ab', 'system -']],
  ['text of the user', user('Wait.'), ['assistant ab', 'user ab-']],
])('calls separated by %s are joined into one turn', (_name, said, expected) => {
  expect(outline(calls('a'), said, calls('b'), resultOf('a'), resultOf('b'))).toEqual(expected)
})

test('a late result moves to its call, and turns said in between follow in their order', () => {
  const late = [calls('a'), user('Wait.'), words(), user('And?'), calls('b'), resultOf('a'), resultOf('b')]
  expect(outline(...late)).toEqual(['assistant a', 'user a-', 'assistant -', 'user -', 'assistant b', 'user b'])
  const later = [calls('a', 'b'), resultOf('a'), calls('c'), resultOf('b'), resultOf('c')]
  expect(outline(...later)).toEqual(['assistant ab', 'user ab', 'assistant c', 'user c'])
})

test('results of later calls follow those calls, even if a call id repeats', () => {
  for (const second of ['b', 'a']) {
    const turns = outline(calls('a'), hurry(), resultOf('a'), calls(second), hurry(), resultOf(second))
    const expected = ['assistant a', 'user a', 'system -', `assistant ${second}`, `user ${second}`, 'system -']
    expect(turns).toEqual(expected)
  }
})

test('several results with one call id keep their order, and none is lost', () => {
  const results = ['one', 'two', 'three'].map((text): UserBlock => {
    return { ...result, callId: 'a', blocks: [{ kind: 'text', text }] }
  })
  const said = results.map((block): Turn => ({ role: 'user', blocks: [block] }))
  const [, turn] = arrangeTurns([calls('a', 'a'), ...said])
  expect(turn?.blocks).toEqual(results)
})

test('a call without a result and a result without a call stay where they are', () => {
  const unanswered = outline(calls('a'), user('Never mind.'), calls('b'), resultOf('b'))
  expect(unanswered).toEqual(['assistant a', 'user -', 'assistant b', 'user b'])
  expect(outline(user('Hi'), words(), resultOf('x'), hurry())).toEqual(['user -', 'assistant -', 'user x', 'system -'])
})

// Copying the earlier turns for each new one would take minutes.
test('a conversation of 200,000 turns is arranged without losing a block', () => {
  const same = Array.from({ length: 200_000 }, () => user('a'))
  expect(arrangeTurns(same)[0]?.blocks).toHaveLength(200_000)
  const awaiting = Array.from({ length: 50_000 }, (_, at) => [calls(`${at}`), hurry()]).flat()
  const results = Array.from({ length: 50_000 }, (_, at) => resultOf(`${at}`))
  const [turn] = arrangeTurns([...awaiting, ...results])
  expect(turn?.blocks).toHaveLength(50_000)
})
