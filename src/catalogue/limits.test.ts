import { expect, test } from 'bun:test'
import { embeddingLimits, imageLimits, speechLimits, videoLimits } from './limits.ts'

test('an image model without limits takes ten images and neither sizes, qualities nor references', () => {
  const drawn = { sizes: [], qualities: [], countMax: 10, references: { min: 0, max: 0 }, alwaysBytes: false }
  expect(imageLimits({}, false)).toEqual(drawn)
  const editSizes = ['1024x1024', '1024x1536', '1536x1024', '256x256', '512x512']
  const edits = { sizes: editSizes, references: { min: 1, max: 16 }, mask: true }
  expect(imageLimits({}, true)).toEqual({ ...drawn, edits })
})

test('an image model with limits keeps them, and edits in its own sizes unless it has others for that', () => {
  const written = {
    sizes: ['512x512'],
    qualities: ['high'],
    countMax: 4,
    references: { min: 0, max: 2 },
    alwaysBytes: true,
    formats: ['png'],
  }
  const edits = { sizes: ['512x512'], references: { min: 1, max: 16 }, mask: true }
  expect(imageLimits(written, false)).toEqual(written)
  expect(imageLimits(written, true)).toEqual({ ...written, edits })
  const own = { sizes: ['256x256'], references: { min: 1, max: 1 }, mask: false }
  expect(imageLimits({ ...written, edits: own }, true)).toEqual({ ...written, edits: own })
})

test('an embedding model without limits has one vector length, and inputs as long as its context', () => {
  const bare = { dimensions: [], dimensionsDefault: 1024, inputTokensMax: 8_000, batchMax: 32 }
  expect(embeddingLimits({}, 8_000, undefined)).toEqual(bare)
  expect(embeddingLimits({ dimensions: [512, 256] }, 8_000, undefined)).toMatchObject({ dimensionsDefault: 512 })
  const written = {
    dimensions: [512, 256],
    dimensionsDefault: 256,
    inputTokensMax: 100,
    batchMax: 2,
    batchTokensMax: 9,
  }
  expect(embeddingLimits(written, 8_000, undefined)).toEqual(written)
})

test('the pinned vector length of an alias is the only one that it has', () => {
  const written = { dimensions: [512, 256], dimensionsSpan: { min: 1, max: 512 }, batchMax: 2 }
  expect(embeddingLimits(written, 8_000, 64)).toEqual({
    dimensions: [64],
    dimensionsDefault: 64,
    inputTokensMax: 8_000,
    batchMax: 2,
  })
})

test('a speech model without limits makes wav of 4096 characters at once, and takes no instructions', () => {
  const bare = { voices: [], formats: ['wav'], instructions: false, charactersMax: 4_096 }
  expect(speechLimits({})).toEqual(bare)
  const written = { voices: ['a'], voiceDefault: 'a', formats: ['mp3'], instructions: true, charactersMax: 9 }
  expect(speechLimits(written)).toEqual(written)
})

const bareVideo = {
  form: 'media',
  kinds: ['t2v'],
  resolutions: ['720p'],
  resolutionDefault: '720p',
  durations: [5],
  durationDefault: 5,
  durationFree: false,
  ratios: ['16:9'],
  referencesMax: 0,
  referenceVideosMax: 0,
  referenceAudiosMax: 0,
  inputSecondsBilled: false,
  drafts: false,
  sound: 'never',
  deadlineSeconds: 86_400,
} as const

test('a video model without limits makes five silent seconds of 720p from a text', () => {
  expect(videoLimits({})).toEqual(bareVideo)
})

test('a video model with limits keeps them', () => {
  const written = {
    form: 'veo',
    kinds: ['i2v', 'r2v'],
    resolutions: ['1080p', '720p'],
    resolutionDefault: '1080p',
    durations: [4, 5],
    durationDefault: 4,
    durationFree: true,
    ratios: ['1:1'],
    referencesMax: 1,
    referenceVideosMax: 2,
    referenceAudiosMax: 3,
    inputSecondsBilled: true,
    inputSecondsMax: 15,
    creditsPerSecond: { '720p': 5 },
    drafts: true,
    sound: 'optional',
    deadlineSeconds: 60,
  } as const
  expect(videoLimits(written as never)).toEqual(written)
})

test('a video model without 720p or five seconds has the first of its own as default, of a span the shortest', () => {
  const own = { resolutions: ['1080p', '480p'], durations: '6..8' }
  expect(videoLimits(own)).toEqual({
    ...bareVideo,
    resolutions: ['1080p', '480p'],
    resolutionDefault: '1080p',
    durations: [6, 7, 8],
    durationDefault: 6,
  })
  expect(videoLimits({ resolutions: ['1080p', '720p'], durations: '4..6' })).toMatchObject({
    resolutionDefault: '720p',
    durationDefault: 5,
  })
})
