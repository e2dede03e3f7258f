import { pause } from '../base/pause.ts'
import { emptyAnswer, gzipBomb, htmlPage } from './odd-answers.ts'
import type { Steering } from './steering.ts'

/** How a protocol words the failures that steering asks for. */
export type Refusals = {
  forCode(code: string): Error
  forStatus(status: number): Error
  /** A refusal of the key that repeats the key in its message. */
  leak(): Error
  /** The body of an error that comes with status 200. */
  body200(): unknown
}

/** No vendor has a code of its own that looks like the status of a refusal: `sandbox:fail=503` means the status. */
const refusalStatus = /^[45]\d\d$/

/**
 * The failures that steering asks for: refusals are thrown, HTML pages and other odd answers are returned, and
 * undefined means that no failure was requested. None of them costs anything.
 */
export async function faultFor(steering: Steering, refusals: Refusals): Promise<Response | undefined> {
  const code = steering.text('fail')
  if (code !== undefined) throw refusalStatus.test(code) ? refusals.forStatus(Number(code)) : refusals.forCode(code)
  if (steering.has('leak')) throw refusals.leak()
  const status = steering.number('status')
  if (status !== undefined && status >= 400) throw refusals.forStatus(status)
  if (status !== undefined && status !== 200) return emptyAnswer(status)
  if (steering.has('html')) return htmlPage(200)
  if (steering.has('error200')) return Response.json(refusals.body200())
  return steering.has('gzip') ? gzipBomb() : undefined
}

/** `faultFor` after the requested delay. A caller that has hung up by then gets no answer and is not charged. */
export async function faultAfterDelay(
  { signal }: Request,
  steering: Steering,
  refusals: Refusals,
): Promise<Response | undefined> {
  const delayMs = steering.number('delay')
  if (delayMs !== undefined) await pause(delayMs, signal)
  return signal.aborted ? new Response(null, { status: 499 }) : faultFor(steering, refusals)
}
