import { describe, expect, test } from 'bun:test'
import { runwayRatio, runwaySize } from './runway-sizes.ts'
import { seedanceTokensMax } from './seedance-sizes.ts'
import { soraFrame, soraSize, soraSizes } from './sora-sizes.ts'
import { wanFrame, wanSize, wanSizes } from './wan-sizes.ts'

/** The relative difference of a size's ratio from the given one. */
function distance(size: string | undefined, ratio: string): number {
  const [width = 0, height = 0] = (size ?? '').split(/[*x:]/).map(Number)
  const [across = 0, down = 0] = ratio.split(':').map(Number)
  return Math.abs(width / height / (across / down) - 1)
}

describe('sizes of videos', () => {
  const ratios = ['16:9', '9:16', '1:1', '4:3', '3:4'] as const

  test.each(['wan2.5', 'wan2.6', 'wan2.7'] as const)(
    'every size of %s has its aspect ratio and reads back as the same frame',
    (form) => {
      for (const resolution of ['480p', '720p', '1080p']) {
        const known = resolution === '480p' ? ratios.slice(0, 3) : ratios
        for (const ratio of known) {
          const size = wanSize(form, { resolution, ratio })
          expect(distance(size, ratio)).toBeLessThan(0.03)
          expect(wanFrame(form, ` ${size?.replace('*', 'X')} `)).toEqual({ resolution, ratio })
        }
        expect(wanSizes(form, [resolution])).toHaveLength(known.length)
      }
      expect(wanSizes(form, ['8k'])).toEqual([])
    },
  )

  test('each version of Wan writes its own sizes and reads those of another version', () => {
    expect(wanSize('wan2.6', { resolution: '720p', ratio: '4:3' })).toBe('1088*832')
    expect(wanSize('wan2.7', { resolution: '720p', ratio: '4:3' })).toBe('1104*832')
    expect(wanFrame('wan2.7', '1088*832')).toEqual({ resolution: '720p', ratio: '4:3' })
    expect(wanFrame('wan2.6', '1104*832')).toEqual({ resolution: '720p', ratio: '4:3' })
  })

  test('every size of Runway has its aspect ratio and reads back as the same ratio', () => {
    for (const ratio of [...ratios, '21:9']) {
      expect(distance(runwaySize(ratio), ratio)).toBeLessThan(0.03)
      expect(runwayRatio(runwaySize(ratio) ?? '')).toBe(ratio)
    }
    expect(runwayRatio('5:4')).toBe('5:4')
  })

  test('every size of Sora has its aspect ratio and reads back as the same frame', () => {
    for (const resolution of ['720p', '1792x1024']) {
      for (const ratio of ['16:9', '9:16']) {
        const size = soraSize({ resolution, ratio })
        expect(distance(size, ratio)).toBeLessThan(0.03)
        expect(soraFrame(` ${size?.replace('x', '*')} `)).toEqual({ resolution, ratio })
        expect(soraFrame(size?.toUpperCase() ?? '')).toEqual({ resolution, ratio })
      }
    }
    expect(soraSizes(['720p', '8k'])).toEqual(['1280x720', '720x1280'])
  })
})

describe('the tokens that a Seedance video is held for', () => {
  const video = { resolution: '720p', ratio: '16:9', seconds: 5, inputSeconds: 0 }
  const tokens = (more: Partial<typeof video>) => seedanceTokensMax({ ...video, ...more })

  test("the hold equals the vendor's count: 108,900 tokens for 5 seconds at 720p", () => {
    expect(tokens({})).toBe(108_900)
    expect(tokens({ seconds: 2, inputSeconds: 3 })).toBe(108_900)
    expect(tokens({ seconds: 10 })).toBe(216_900)
  })

  test.each(['480p', '720p', '1080p', '4k'])(
    'the hold at %s is the same for a rotated ratio and similar for the other ratios',
    (resolution) => {
      expect(tokens({ resolution, ratio: '9:16' })).toBe(tokens({ resolution }))
      expect(tokens({ resolution, ratio: '3:4' })).toBe(tokens({ resolution, ratio: '4:3' }))
      // All ratios of a resolution have about the same number of pixels.
      for (const ratio of ['4:3', '1:1', '21:9']) {
        expect(tokens({ resolution, ratio }) / tokens({ resolution })).toBeWithin(0.95, 1.05)
      }
    },
  )

  test('an adaptive ratio or an unknown resolution is held for the largest count', () => {
    const shapes = ['16:9', '4:3', '1:1', '21:9'].map((ratio) => tokens({ ratio }))
    expect(tokens({ ratio: 'adaptive' })).toBe(Math.max(...shapes))
    expect(tokens({ resolution: '8k' })).toBe(tokens({ resolution: '4k' }))
  })
})
