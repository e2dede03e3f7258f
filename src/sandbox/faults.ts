import { pause } from '../base/pause.ts'
import { emptyAnswer, gzipBomb, htmlPage } from './odd-answers.ts'
import type { Steering } from './steering.ts'

/** How a protocol words the failures it is asked for. */
export type Refusals = {
  forCode(code: string): Error
  forStatus(status: number): Error
  /** A refused key, repeated in the message. */
  leak(): Error
  /** The body of an error that comes with status 200. */
  body200(): unknown
}

/**
 * The answers that are no answers: refusals are thrown, pages and other oddities returned, and undefined means that
 * nothing of the kind was asked for. None of them costs anything.
 */
export async function faultFor(steering: Steering, refusals: Refusals): Promise<Response | undefined> {
  const code = steering.text('fail')
  if (code !== undefined) throw refusals.forCode(code)
  if (steering.has('leak')) throw refusals.leak()
  const status = steering.number('status')
  if (status !== undefined && status >= 400) throw refusals.forStatus(status)
  if (status !== undefined && status !== 200) return emptyAnswer(status)
  if (steering.has('html')) return htmlPage(200)
  if (steering.has('error200')) return Response.json(refusals.body200())
  return steering.has('gzip') ? gzipBomb() : undefined
}

/** The same after the delay that was asked for. A caller who has left by then gets no answer, and pays for none. */
export async function faultAfterDelay(
  { signal }: Request,
  steering: Steering,
  refusals: Refusals,
): Promise<Response | undefined> {
  const delayMs = steering.number('delay')
  if (delayMs !== undefined) await pause(delayMs, signal)
  return signal.aborted ? new Response(null, { status: 499 }) : faultFor(steering, refusals)
}
