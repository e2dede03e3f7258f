import { GatewayError } from '../../base/errors.ts'
import type { WriteError } from '../../capabilities/errors.ts'
import { writeErrorWithPlain402 } from './errors.ts'

/** Shape B as the specification has it on speech, where an unknown model counts as one that does not fit the path. */
export const writeSpeechError: WriteError = (error, requestId) => {
  const { kind, message, details } = error
  const shown = kind === 'unknown-model' ? new GatewayError('wrong-capability', message, details) : error
  return writeErrorWithPlain402(shown, requestId)
}
