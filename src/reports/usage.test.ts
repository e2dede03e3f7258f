import { describe, expect, test } from 'bun:test'
import type { Store } from '../store/open.ts'
import { reportUsage, showUsage } from './usage.ts'

test('a sum that takes long is given up for a customer, and not for an operator', async () => {
  const limits: unknown[] = []
  const snapshot = (_work: unknown, statementMsMax: number | undefined) => {
    limits.push(statementMsMax)
    return Promise.resolve([])
  }
  for (const reader of ['customer', 'operator'] as const) {
    await reportUsage({ snapshot } as unknown as Store, { scope: 'every-account' }, { limit: 1 }, reader)
  }
  expect(limits).toEqual([2_000, undefined])
})

describe('the usage of one request', () => {
  test('input and output are shown even if they are zero, other counts only if they are not', () => {
    const counted = { input: 0, cachedInput: 0, output: 0, reasoning: 0, webSearch: 0 }
    expect(showUsage(counted)).toEqual({ input_tokens: 0, output_tokens: 0 })
    expect(showUsage({ ...counted, cachedInput: 3, reasoning: 2, webSearch: 1 })).toEqual({
      input_tokens: 0,
      cached_input_tokens: 3,
      output_tokens: 0,
      reasoning_tokens: 2,
      web_searches: 1,
    })
    expect(showUsage({ character: 7 })).toEqual({ characters: 7 })
  })

  test('images are shown with the size and quality by which they were priced', () => {
    expect(showUsage({ images: { count: 2 } })).toEqual({ images: 2 })
    expect(showUsage({ images: { count: 1, size: '1024x1536', quality: 'high' } })).toEqual({
      images: 1,
      image_size: '1024x1536',
      image_quality: 'high',
    })
  })

  test('a video is shown with its seconds, its resolution and, where that was chosen, its sound', () => {
    const silent = { seconds: 5.2, resolution: '720p', sound: false }
    expect(showUsage({ video: { seconds: 5, resolution: '1080p' } })).toEqual({
      video_seconds: 5,
      video_resolution: '1080p',
    })
    expect(showUsage({ videoToken: 9, video: silent })).toEqual({
      video_tokens: 9,
      video_seconds: 5.2,
      video_resolution: '720p',
      video_sound: false,
    })
  })
})
