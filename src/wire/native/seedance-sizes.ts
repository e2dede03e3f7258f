type Side = readonly [width: number, height: number]

// Width and height in pixels, by the vendor's table. A portrait size has the pixels of its landscape size.
const sizes: Readonly<Record<string, Readonly<Record<string, Side>>>> = {
  '480p': { '16:9': [864, 496], '4:3': [752, 560], '1:1': [640, 640], '21:9': [992, 432] },
  '720p': { '16:9': [1280, 720], '4:3': [1112, 834], '1:1': [960, 960], '21:9': [1470, 630] },
  '1080p': { '16:9': [1920, 1080], '4:3': [1664, 1248], '1:1': [1440, 1440], '21:9': [2206, 946] },
  '4k': { '16:9': [3840, 2160], '4:3': [3326, 2494], '1:1': [2880, 2880], '21:9': [4398, 1886] },
}
const turned: Readonly<Record<string, string>> = { '9:16': '16:9', '3:4': '4:3' }
const framesPerSecond = 24
const pixelsPerToken = 1_024

type VideoSizing = {
  readonly resolution: string
  readonly ratio: string
  readonly seconds: number
  readonly inputSeconds: number
}

/**
 * The most tokens a video can take: width x height x frames / 1024. Where the model chooses the ratio, the largest size
 * of the resolution counts; a resolution that is not in the table counts as 4k.
 */
export function seedanceTokensMax({ resolution, ratio, seconds, inputSeconds }: VideoSizing): number {
  const shapes = sizes[resolution] ?? sizes['4k'] ?? {}
  const shape = shapes[turned[ratio] ?? ratio]
  const possible = shape === undefined ? Object.values(shapes) : [shape]
  const pixels = Math.max(...possible.map(([width, height]) => width * height))
  const frames = framesPerSecond * (seconds + inputSeconds) + 1
  return Math.ceil((pixels * frames) / pixelsPerToken)
}
