import type { VideoAsk } from '../capabilities/video.ts'
import { textIn } from '../wire/loose.ts'
import { unsupported } from '../wire/native/video-fields.ts'

/** What Seedance alone knows. */
export const seedanceOnly = ['camera_fixed', 'return_last_frame', 'priority', 'execution_expires_after'] as const

/** Read by the gateway itself, which has done or refused what they ask for; or labels, which change no film. */
export const readHere = [
  'generate_audio',
  'draft',
  'safety_identifier',
  'service_tier',
  'tools',
  'n',
  'sampleCount',
] as const

/**
 * Parameters of one or two families, and of ours: no other vendor is sent them. Each adapter adds what it writes elsewhere,
 * or knows under another name.
 */
export const seldomKnown = [...seedanceOnly, ...readHere] as const

/**
 * For parameters that a vendor has no field for and that are not sent to it: whoever asks for something with one is told,
 * since it would be paid for and have no effect. What is off asks for nothing.
 */
export function refuseUnknown({ parameters }: VideoAsk, names: readonly string[]): void {
  const asked = names.find((name) => Boolean(parameters[name]))
  if (asked === undefined) return
  throw unsupported(`parameters.${asked}`, 'is not supported by this model: it would have no effect.')
}

/** The same for a vendor that refuses whatever it does not know. */
export function refuseAllBut(ask: VideoAsk, taken: ReadonlySet<string>): void {
  const others = Object.keys(ask.parameters).filter((name) => !taken.has(name))
  refuseUnknown(ask, others)
}

/** What is not to be seen, in either of the places where clients write it; empty where nobody said. */
export function negativeOf({ input, parameters }: VideoAsk): string {
  return textIn(input['negative_prompt']) || textIn(parameters['negative_prompt'])
}

/** For vendors that have no such field: what somebody does not want to see must not be left out in silence. */
export function refuseNegative({ input, parameters }: VideoAsk): void {
  for (const [place, fields] of [
    ['input', input],
    ['parameters', parameters],
  ] as const) {
    if (textIn(fields['negative_prompt']) === '') continue
    throw unsupported(`${place}.negative_prompt`, 'is not supported by this model: describe it in the prompt.')
  }
}
