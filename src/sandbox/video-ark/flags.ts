import { type Fields, ownIn } from '../fields.ts'

/** Some fields may also be given in the older form, at the end of the prompt: `--rs 720p --dur 5`. */
const names: Readonly<Record<string, string>> = {
  rs: 'resolution',
  resolution: 'resolution',
  rt: 'ratio',
  ratio: 'ratio',
  dur: 'duration',
  duration: 'duration',
  frames: 'frames',
  seed: 'seed',
  cf: 'camera_fixed',
  camerafixed: 'camera_fixed',
  wm: 'watermark',
  watermark: 'watermark',
}

/**
 * The flags as if they were fields of the body. The last flag of a kind wins, and unknown flags are part of the text.
 */
export function readFlags(text: string): Fields {
  const found: Record<string, unknown> = {}
  for (const [, flag = '', value = ''] of text.matchAll(/--([a-z]+)\s+(\S+)/g)) {
    const name = ownIn(names, flag)
    if (name !== undefined) found[name] = readValue(value)
  }
  return found
}

function readValue(text: string): string | number | boolean {
  if (/^-?\d+$/.test(text)) return Number(text)
  return text === 'true' || text === 'false' ? text === 'true' : text
}
