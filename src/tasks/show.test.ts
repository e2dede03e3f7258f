import { expect, test } from 'bun:test'
import type { Task } from '../store/tasks.ts'
import { showTask } from './show.ts'
import { writeEvent } from './webhooks/event.ts'

const expiresAt = 2_000_000

const done = {
  id: 'vid_1',
  model: 'film',
  state: 'succeeded',
  upstreamId: 'up-1',
  createdAt: 1_000_000,
  updatedAt: 1_500_000,
  failure: null,
  facts: { seconds: 5, resolution: '720p' },
  usage: { video: { seconds: 5, resolution: '720p' } },
  // Vendors have links in lists, and in lists within those.
  record: {
    note: 'theirs',
    links: ['https://vendor/film', 'https://vendor/frame', 'https://vendor/other'],
    task_result: { videos: [{ url: 'https://vendor/film', frames: ['https://vendor/frame'] }] },
  },
  result: {
    videoUrl: 'https://ours/film',
    lastFrameUrl: 'https://ours/frame',
    vendorUrl: 'https://vendor/film',
    vendorFrameUrl: 'https://vendor/frame',
    expiresAt,
  },
} as unknown as Task

test('our links replace the vendor’s links in its record, until they expire', () => {
  expect(showTask(done, expiresAt - 1)).toMatchObject({
    id: 'vid_1',
    note: 'theirs',
    links: ['https://ours/film', 'https://ours/frame', 'https://vendor/other'],
    task_result: { videos: [{ url: 'https://ours/film', frames: ['https://ours/frame'] }] },
    content: { video_url: 'https://ours/film', last_frame_url: 'https://ours/frame' },
  })
  expect(showTask(done, expiresAt)).toMatchObject({
    links: [null, null, 'https://vendor/other'],
    task_result: { videos: [{ url: null, frames: [null] }] },
    content: { video_url: null, last_frame_url: null, expired: true },
  })
})

test('a failure is shown and an event is made only once the task is over', () => {
  const failure = { code: 'timeout', message: 'too late' }
  const running: Task = { ...done, state: 'running', failure }
  expect(showTask(running, 0)).not.toHaveProperty('error')
  expect(() => writeEvent(running, 0)).toThrow('is not over')
  const failed: Task = { ...running, state: 'failed', result: null }
  expect(showTask(failed, 0)).toMatchObject({ error: failure, content: null })
  expect(JSON.parse(writeEvent(failed, 7_900))).toEqual({
    type: 'video.generation.failed',
    created_at: 7,
    data: showTask(failed, 7_900),
  })
})
