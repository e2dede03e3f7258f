import { describe, expect, test } from 'bun:test'
import type { VideoNews } from '../capabilities/video.ts'
import type { StoredTaskState } from '../store/task-schema.ts'
import { statesBefore, decide, isOver, openStates, shownState } from './state.ts'

const all: readonly StoredTaskState[] = [
  'creating',
  'submitted',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'refused',
]

describe('the states of a task', () => {
  test('states lead one way, and none follows an end', () => {
    for (const state of all) {
      expect(statesBefore(state).filter(isOver)).toEqual([])
      for (const earlier of statesBefore(state)) expect(statesBefore(earlier)).not.toContain(state)
    }
    expect(statesBefore('creating')).toEqual([])
    expect(statesBefore('running')).toEqual(['creating', 'submitted'])
    expect(statesBefore('succeeded')).toEqual(['creating', 'submitted', 'running'])
    // A task that a vendor has taken can no longer be refused.
    expect(statesBefore('refused')).toEqual(['creating'])
    expect(openStates).toEqual(['creating', 'submitted', 'running'])
  })

  test('states are shown in the words of the specification', () => {
    expect(all.map(shownState)).toEqual([
      'submitted',
      'submitted',
      'running',
      'succeeded',
      'failed',
      'cancelled',
      'failed',
    ])
  })
})

const result = { videoUrl: 'https://vendor.example/v.mp4', needsKey: false }
const task = (state: StoredTaskState, lost = 0) => ({ state, lost })

describe("a vendor's news", () => {
  type Row = { state: StoredTaskState; lost?: number; news: Partial<VideoNews>; is: object }
  const rows: readonly Row[] = [
    { state: 'submitted', news: { state: 'submitted' }, is: { kind: 'stay', lost: 0 } },
    { state: 'submitted', news: { state: 'running' }, is: { kind: 'run' } },
    { state: 'running', news: { state: 'running' }, is: { kind: 'stay', lost: 0 } },
    // A vendor that goes back to an earlier state is not followed.
    { state: 'running', news: { state: 'submitted' }, is: { kind: 'stay', lost: 0 } },
    { state: 'running', news: { state: 'unknown-word' }, is: { kind: 'stay', lost: 0 } },
    { state: 'submitted', news: { state: 'succeeded', result }, is: { kind: 'end', state: 'succeeded' } },
    {
      state: 'running',
      news: { state: 'succeeded' },
      is: { state: 'failed', failure: { code: 'upstream_no_output' } },
    },
    {
      state: 'running',
      news: { state: 'succeeded', result: { ...result, videoUrl: '' } },
      is: { state: 'failed', failure: { code: 'upstream_no_output' } },
    },
    {
      state: 'running',
      news: { state: 'succeeded', result: { ...result, videoUrl: 'javascript:alert(1)' } },
      is: { state: 'failed', failure: { code: 'upstream_no_output' } },
    },
    {
      state: 'running',
      news: { state: 'failed', error: { code: 'Sensitive', message: 'no' } },
      is: { kind: 'end', state: 'failed', failure: { code: 'Sensitive', message: 'no' } },
    },
    { state: 'running', news: { state: 'failed' }, is: { failure: { code: 'upstream_failed' } } },
    // A vendor may give a code and no words.
    {
      state: 'running',
      news: { state: 'failed', error: { code: 'Internal', message: '' } },
      is: { failure: { code: 'Internal', message: 'The vendor could not make the video.' } },
    },
    { state: 'running', news: { state: 'cancelled' }, is: { kind: 'end', state: 'cancelled' } },
    { state: 'running', news: { state: 'expired' }, is: { state: 'failed', failure: { code: 'timeout' } } },
    { state: 'submitted', news: { state: 'lost' }, is: { kind: 'stay', lost: 1 } },
    { state: 'submitted', lost: 2, news: { state: 'lost' }, is: { kind: 'stay', lost: 3 } },
    { state: 'submitted', lost: 3, news: { state: 'lost' }, is: { failure: { code: 'upstream_task_lost' } } },
    // Once the vendor knows the task again, the count starts anew.
    { state: 'submitted', lost: 3, news: { state: 'submitted' }, is: { kind: 'stay', lost: 0 } },
  ]
  test.each(rows)('row %# leads to the decision that the table names', ({ state, lost, news, is }) => {
    expect(decide(task(state, lost), { state: 'submitted', ...news })).toMatchObject(is)
  })
})
