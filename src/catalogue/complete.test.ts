import { describe, expect, test } from 'bun:test'
import type { Capability } from '../capabilities/capability.ts'
import type { ImageLimits, VideoLimits } from '../capabilities/limits.ts'
import { missingPrices } from './complete.ts'
import { imageLimits, videoLimits } from './limits.ts'
import { compilePrices, readExchange } from './prices.ts'
import type { WrittenPrices } from './schema.ts'

function lacks(
  capability: Capability,
  written: WrittenPrices,
  limits: { images?: ImageLimits; video?: VideoLimits } = {},
): string | undefined {
  const { prices } = compilePrices([{ written, path: [] }], readExchange({}))
  return missingPrices(capability, prices, limits)
}

describe('the prices that a model needs to be sold', () => {
  test.each<[Capability, WrittenPrices, string | undefined]>([
    ['chat', { inputPerMillion: '1', outputPerMillion: '1' }, undefined],
    ['chat', { inputPerMillion: '1' }, 'outputPerMillion'],
    ['chat', { outputPerMillion: '1' }, 'inputPerMillion'],
    ['chat', {}, 'inputPerMillion and outputPerMillion'],
    ['embeddings', { outputPerMillion: '1' }, 'inputPerMillion'],
    ['speech', { perMillionCharacters: '1' }, undefined],
    ['speech', { inputPerMillion: '1', outputPerMillion: '1' }, undefined],
    ['speech', { inputPerMillion: '1', audioOutputPerMillion: '1' }, undefined],
    ['speech', { inputPerMillion: '1' }, 'perMillionCharacters, or token prices'],
    ['speech', { audioOutputPerMillion: '1' }, 'perMillionCharacters, or token prices'],
    ['images', { inputPerMillion: '1', imageOutputPerMillion: '1' }, undefined],
    ['images', { imageOutputPerMillion: '1' }, 'inputPerMillion'],
    ['images', { imageOutputPerMillion: '1', perImage: '1' }, 'inputPerMillion'],
    ['images', { inputPerMillion: '1', outputPerMillion: '1' }, 'perImage'],
    ['edits', { perImage: '1' }, undefined],
    ['edits', {}, 'perImage'],
  ])('a missing price is found for %s priced by %j', (capability, written, missing) => {
    expect(lacks(capability, written)).toBe(missing)
  })

  test('images need a price for each size and quality', () => {
    const sizes = imageLimits({ sizes: ['1024x1024', '512x512', 'auto'] }, false)
    const images = { ...sizes, qualities: ['low', 'high'] }
    const perImage = { '1024x1024': '1', '512x512/low': '1' }
    expect(lacks('images', { perImage }, { images })).toBe('perImage for 512x512')
    expect(lacks('images', { perImage: { ...perImage, '512x512/high': '1' } }, { images })).toBeUndefined()
    expect(lacks('images', { perImage }, { images: sizes })).toBe('perImage for 512x512')
    expect(lacks('images', { perImage: { '1024x1024': '1' } }, { images: { ...images, free: { step: 1 } } })).toBe(
      'perImage',
    )
  })

  test.each(['always', 'never', 'optional'] as const)(
    'videos with sound %s need a price for each resolution, as one amount or a pair',
    (sound) => {
      const video = videoLimits({ resolutions: ['720p', '1080p'], sound })
      const pair = { sound: '2', silent: '1' }
      expect(lacks('video', { perSecond: pair }, { video })).toBeUndefined()
      expect(lacks('video', { perSecond: { '720p': pair, '1080p': '3' } }, { video })).toBeUndefined()
      expect(lacks('video', { perSecond: { '720p': pair } }, { video })).toBe('perSecond for 1080p')
      expect(lacks('video', { perSecond: { '1080p': '3' } }, { video })).toBe('perSecond for 720p')
    },
  )
})
