import type { VideoForm } from '../../capabilities/limits.ts'

/** The resolution and ratio that a size stands for. */
export type Frame = { readonly resolution: string; readonly ratio: string }

type Sizes = Readonly<Record<string, Readonly<Record<string, string>>>>

// The vendor's table. The versions differ only in 4:3 and 3:4.
const low = { '16:9': '832*480', '9:16': '480*832', '1:1': '624*624' }
const middle = { '16:9': '1280*720', '9:16': '720*1280', '1:1': '960*960' }
const high = { '16:9': '1920*1080', '9:16': '1080*1920', '1:1': '1440*1440' }

const until26: Sizes = {
  '480p': low,
  '720p': { ...middle, '4:3': '1088*832', '3:4': '832*1088' },
  '1080p': { ...high, '4:3': '1632*1248', '3:4': '1248*1632' },
}
const since27: Sizes = {
  '480p': low,
  '720p': { ...middle, '4:3': '1104*832', '3:4': '832*1104' },
  '1080p': { ...high, '4:3': '1648*1248', '3:4': '1248*1648' },
}

function sizesOf(form: VideoForm): Sizes {
  return form === 'wan2.5' || form === 'wan2.6' ? until26 : since27
}

/** `1280*720`, for example; undefined where the version has no such size. */
export function wanSize(form: VideoForm, { resolution, ratio }: Frame): string | undefined {
  return sizesOf(form)[resolution]?.[ratio]
}

/** Every size of these resolutions, for the error about a size that is not among them. */
export function wanSizes(form: VideoForm, resolutions: readonly string[]): string[] {
  return resolutions.flatMap((resolution) => Object.values(sizesOf(form)[resolution] ?? {}))
}

/** Reads `1280*720`, or the same with `x`. A size from another version's table is understood too. */
export function wanFrame(form: VideoForm, size: string): Frame | undefined {
  const spelled = size.trim().toLowerCase().replace('x', '*')
  for (const sizes of [sizesOf(form), until26, since27]) {
    for (const [resolution, shapes] of Object.entries(sizes)) {
      const found = Object.entries(shapes).find(([, written]) => written === spelled)
      if (found !== undefined) return { resolution, ratio: found[0] }
    }
  }
  return undefined
}
