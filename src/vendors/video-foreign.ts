import type { VideoAsk } from '../capabilities/video.ts'
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
  throw unsupported(`parameters.${asked}`, 'is not for this model: it would have no effect.')
}
