import type { GatewayError } from '../base/errors.ts'
import type { VideoAsk } from '../capabilities/video.ts'
import { textIn } from '../wire/loose.ts'
import { parameterAt, unsupported } from '../wire/native/video-fields.ts'

/** Parameters that only Seedance knows. */
export const seedanceOnly = ['camera_fixed', 'return_last_frame', 'priority', 'execution_expires_after'] as const

/** Parameters of one or two families, which the others have no field for. */
export const rarelyKnown = [...seedanceOnly, 'mode', 'prompt_extend', 'prompt_optimizer', 'shot_type'] as const

/** Parameters that the gateway itself has carried out or refused, and labels, which change no video. */
export const gatewayParameters = [
  'generate_audio',
  'draft',
  'safety_identifier',
  'service_tier',
  'tools',
  'n',
  'sampleCount',
] as const

/**
 * For parameters that a vendor has no field for, which are not sent to it: a client that sets one gets an error,
 * because it would pay for something that has no effect. A parameter that is off asks for nothing.
 */
export function refuseUnknown(ask: VideoAsk, names: readonly string[]): void {
  const asked = names.find((name) => Boolean(ask.parameters[name]))
  if (asked !== undefined) throw withoutEffect(ask, asked)
}

/** The same for a seed, of which zero is one too. */
export function refuseSeed(ask: VideoAsk): void {
  if (ask.seed !== undefined) throw withoutEffect(ask, 'seed')
}

function withoutEffect(ask: VideoAsk, name: string): GatewayError {
  return unsupported(parameterAt(ask, name), 'is not supported by this model: it would have no effect.')
}

/** The same for a vendor that refuses every parameter it does not know. */
export function refuseAllBut(ask: VideoAsk, taken: ReadonlySet<string>): void {
  const others = Object.keys(ask.parameters).filter((name) => !taken.has(name))
  refuseUnknown(ask, others)
}

/** The negative prompt, from either of the places where clients write it; empty where there is none. */
export function negativePromptOf({ input, parameters }: VideoAsk): string {
  return textIn(input['negative_prompt']) || textIn(parameters['negative_prompt'])
}

/** For vendors without such a field: a negative prompt must not be dropped silently. */
export function refuseNegativePrompt(ask: VideoAsk): void {
  if (negativePromptOf(ask) === '') return
  const isInside = textIn(ask.input['negative_prompt']) !== ''
  const at = isInside ? 'input.negative_prompt' : parameterAt(ask, 'negative_prompt')
  throw unsupported(at, 'is not supported by this model: describe it in the prompt.')
}
