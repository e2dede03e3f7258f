import { GatewayError } from '../../base/errors.ts'
import { newAttemptId } from '../../base/ids.ts'
import { zeroNano } from '../../base/money.ts'
import type { AttemptRecord } from '../../store/requests.ts'
import type { CallContext, Responded, Step, StepCall } from '../../vendors/vendor.ts'
import { attempt, attemptRecord, contextOf, type CallParts, type Failed } from '../attempt.ts'
import type { Leg } from '../legs.ts'
import type { Routed } from '../stages.ts'

/** Calls of one request at a time: enough to be quick, few enough not to be taken for a flood. */
const sideBySideMax = 8
/** A part that failed is tried again alone, so that ninety-nine good ones are not bought twice. */
const triesMax = 3
const stepsMax = 8
const answerBytesMax = 256 * 1024 * 1024

type Walked<Answer> = { readonly kind: 'done'; readonly answer: Answer; readonly legs: readonly Leg[] }

/** Takes an adapter's steps one after another, making the calls it asks for, until it has an answer. */
export async function walkSteps<Answer>(
  parts: CallParts,
  routed: Routed,
  start: (context: CallContext) => Step<Answer>,
): Promise<Walked<Answer> | Failed> {
  const walk = new Walk(parts, routed)
  let step = start(contextOf(routed, parts.tenantMac))
  for (let taken = 0; step.kind === 'calls'; taken++) {
    if (taken === stepsMax) throw new GatewayError('bug', 'an adapter came to no end')
    const responses = await walk.make(step.calls)
    if (!Array.isArray(responses)) return responses
    step = step.next(responses)
  }
  return { kind: 'done', answer: step.answer, legs: walk.legs(step.used) }
}

class Walk {
  readonly #parts: CallParts
  readonly #routed: Routed
  readonly #failed: AttemptRecord[] = []
  /** Calls that were answered, in the order of the adapter's asking. */
  readonly #answered: Routed[] = []
  #attempts = 0

  constructor(parts: CallParts, routed: Routed) {
    this.#parts = parts
    this.#routed = routed
  }

  /** The responses, in the order of the calls; or the first failure, and then nothing more is begun. */
  async make(calls: readonly StepCall[]): Promise<Responded[] | Failed> {
    const made = calls.map((): Made | undefined => undefined)
    let failure: Failed | undefined
    let next = 0
    const work = async () => {
      for (let index = next++; index < calls.length && failure === undefined; index = next++) {
        const call = calls[index]
        if (call === undefined) return
        const outcome = await this.#makeOne(call)
        if (outcome.kind === 'failed') failure ??= outcome
        else made[index] = outcome
      }
    }
    await Promise.all(Array.from({ length: Math.min(sideBySideMax, calls.length) }, work))
    const done = made.filter((one) => one !== undefined)
    this.#answered.push(...done.flatMap(({ leg }) => (leg === undefined ? [] : [leg])))
    if (failure !== undefined) return this.#giveUp(failure)
    return done.map(({ response }) => response)
  }

  /** One leg for each call that is on the vendor's bill, with what the adapter says that it used. */
  legs(used: Extract<Step<unknown>, { kind: 'answered' }>['used']): Leg[] {
    if (used.length !== this.#answered.length) throw new GatewayError('bug', 'an adapter did not count its calls')
    return this.#answered.map(({ attemptId }, index) => ({ attemptId, count: () => used[index] }))
  }

  async #makeOne(call: StepCall): Promise<Made | Failed> {
    if (call.transport !== 'vendor') return { kind: 'made', response: await this.#fetch(call) }
    for (let tries = 1; ; tries++) {
      const leg = this.#nextLeg()
      const headers = { ...call.headers, 'x-client-request-id': leg.attemptId }
      const outcome = await attempt(this.#parts, leg, { ...call, headers }, async (exchange): Promise<Responded> => {
        return { header: (name) => exchange.header(name), body: await exchange.readAll(answerBytesMax) }
      })
      if (outcome.kind === 'accepted') return { kind: 'made', response: outcome.accepted, leg }
      // Alone it is tried again only where its neighbours succeeded: a whole that failed is the line's to send elsewhere.
      if (outcome.retry === 'no' || tries === triesMax || this.#isAlone()) return outcome
      this.#failed.push(...outcome.attempts)
    }
  }

  #isAlone(): boolean {
    return this.#attempts === 1
  }

  #nextLeg(): Routed {
    const attemptId = this.#attempts === 0 ? this.#routed.attemptId : newAttemptId()
    this.#attempts++
    return { ...this.#routed, attemptId }
  }

  #fetch(call: Exclude<StepCall, { transport: 'vendor' }>): Promise<Responded> {
    const { fetchLink } = this.#parts
    return fetchLink(call, this.#routed.route.channel, this.#routed.signal)
  }

  /** What the others were answered is of no use, and may have cost us something: it stays on record. */
  #giveUp(failure: Failed): Failed {
    const wasted = this.#answered.map((leg) =>
      attemptRecord(leg, { status: 200, vendorCost: zeroNano, delivered: false }),
    )
    return { ...failure, attempts: [...this.#failed, ...wasted, ...failure.attempts] }
  }
}

type Made = { readonly kind: 'made'; readonly response: Responded; readonly leg?: Routed }
