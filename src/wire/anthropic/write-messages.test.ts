import { expect, test } from 'bun:test'
import type { Turn } from '../../capabilities/conversation.ts'
import { newLadder, write } from './testing.ts'

const said = (role: Turn['role'], text: string): Turn => ({ role, blocks: [{ kind: 'text', text }] })
const written = (role: Turn['role'], ...texts: readonly string[]) => ({
  role,
  content: texts.map((text) => ({ type: 'text', text })),
})

function messages(turns: readonly Turn[], upstreamModel = 'claude-opus-5') {
  return write({ turns }, { upstreamModel, efforts: newLadder })['messages']
}

const [hi, hello, so] = [said('user', 'Hi'), said('assistant', 'Hello'), said('user', 'So?')]
const brief = said('system', 'Be brief.')
const marked = '<system>\nBe brief.\n</system>'

test('instructions in the middle are written behind what the user said beside them', () => {
  expect(messages([hi, hello, brief, so])).toEqual([
    written('user', 'Hi'),
    written('assistant', 'Hello'),
    written('user', 'So?'),
    written('system', 'Be brief.'),
  ])
  expect(messages([hi, brief, so, said('system', 'Be kind.'), hello, so])).toEqual([
    written('user', 'Hi', 'So?'),
    written('system', 'Be brief.', 'Be kind.'),
    written('assistant', 'Hello'),
    written('user', 'So?'),
  ])
})

test('a turn of the model of which nothing is left does not separate instructions from the user’s words', () => {
  expect(messages([hi, brief, said('assistant', ' '), so])).toEqual([
    written('user', 'Hi', 'So?'),
    written('system', 'Be brief.'),
  ])
})

test('instructions where the user said nothing are written as text of the user', () => {
  expect(messages([hi, hello, brief])).toEqual([
    written('user', 'Hi'),
    written('assistant', 'Hello'),
    written('user', marked),
  ])
})

test.each(['claude-sonnet-4-6', 'claude-opus-4-7-20260416', 'claude-opus-4-20250514', 'claude-3-7-sonnet'])(
  '%s, which is older than Opus 4.8, gets instructions in the middle as text of the user',
  (model) => {
    expect(messages([hi, brief], model)).toEqual([written('user', 'Hi', marked)])
  },
)

test.each(['claude-opus-4-8', 'claude-opus-4-8-20260528', 'claude-sonnet-5', 'claude-haiku-5-5'])(
  '%s gets instructions in the middle as such',
  (model) => {
    expect(messages([hi, brief], model)).toEqual([written('user', 'Hi'), written('system', 'Be brief.')])
  },
)

const hinted = (role: Turn['role'], text: string, cache: '5m' | '1h') =>
  ({ role, blocks: [{ kind: 'text', text, cache }] }) as Turn

test('a one-hour cache hint of the model’s message after a five-minute one of instructions becomes five minutes', () => {
  const turns = [hi, hinted('system', 'Be brief.', '5m'), hinted('assistant', 'Hello', '1h'), so]
  // The vendor refuses an hour after five minutes.
  expect(JSON.stringify(messages(turns)).match(/"cache_control":\{[^}]*\}/g)).toEqual([
    '"cache_control":{"type":"ephemeral"}',
    '"cache_control":{"type":"ephemeral"}',
  ])
})
