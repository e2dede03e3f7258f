import type { Frame } from './wan-sizes.ts'

/** OpenAI gives resolution and ratio together, as the video's size in pixels. */
const pixels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '720p': { '16:9': '1280x720', '9:16': '720x1280' },
  '1792x1024': { '16:9': '1792x1024', '9:16': '1024x1792' },
}

export function soraSize({ resolution, ratio }: Frame): string | undefined {
  return pixels[resolution]?.[ratio]
}

/** Every size of these resolutions, for the error about a size that is not among them. */
export function soraSizes(resolutions: readonly string[]): string[] {
  return resolutions.flatMap((resolution) => Object.values(pixels[resolution] ?? {}))
}

/** The resolution and ratio of a pixel size, whose sides may also be joined by `*`. */
export function soraFrame(size: string): Frame | undefined {
  const spelled = size.trim().toLowerCase().replace('*', 'x')
  for (const [resolution, shapes] of Object.entries(pixels)) {
    const found = Object.entries(shapes).find(([, written]) => written === spelled)
    if (found !== undefined) return { resolution, ratio: found[0] }
  }
  return undefined
}
