/** Runway names a ratio by its pixels. These are the ones its official client lists for gen4_turbo and gen4.5. */
const pixels: Readonly<Record<string, string>> = {
  '16:9': '1280:720',
  '9:16': '720:1280',
  '4:3': '1104:832',
  '3:4': '832:1104',
  '1:1': '960:960',
  '21:9': '1584:672',
}

const shapes: ReadonlyMap<string, string> = new Map(Object.entries(pixels).map(([ratio, size]) => [size, ratio]))

export function runwaySize(ratio: string): string | undefined {
  return pixels[ratio]
}

/** The ratio that a pixel size of Runway's stands for; any other text is returned unchanged. */
export function runwayRatio(word: string): string {
  return shapes.get(word) ?? word
}
