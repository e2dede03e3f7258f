import { asGatewayError, forbidRetry, GatewayError, refusedInside } from '../../base/errors.ts'
import { abortSignalOf } from '../../base/http/client-signal.ts'
import { newAttemptId } from '../../base/ids.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import type { Counted } from '../../capabilities/usage.ts'
import type { AttemptRecord } from '../../store/requests.ts'
import type { CallContext, VendorResponse, Step, StepCall } from '../../vendors/vendor.ts'
import { wastedAttempts } from '../attempt-records.ts'
import { answerBytesMax, attempt, contextOf, fetchInTime, type CallParts } from '../attempt.ts'
import { failedBesidePaid, logFailure, withSecretsScrubbed } from '../failed.ts'
import type { Leg } from '../legs.ts'
import { pauseBefore } from '../pause.ts'
import type { Failed, Routed } from '../stages.ts'

/** Calls of one request at a time: enough to be quick, few enough not to look like a flood to the vendor. */
const sideBySideMax = 8
/** A part that failed is tried again alone, so that ninety-nine good ones are not bought twice. */
const triesMax = 3
const stepsMax = 8

type Walked<Finished> = {
  readonly kind: 'done'
  readonly finished: Finished
  readonly legs: readonly Leg[]
  /** Every call that failed, also those that were repeated. */
  readonly failed: readonly AttemptRecord[]
}

type Way<Answer, Finished> = {
  readonly start: (context: CallContext) => Step<Answer>
  readonly finish: (answer: Answer) => Promise<Finished>
  /** The limit for the response to one call. */
  readonly bytesMax?: number | undefined
}

/**
 * Takes an adapter's steps one after another, making the calls it asks for, until it has an answer, and finishes that.
 * What goes wrong after a call was answered is the attempt's failure and stays on record, because the vendor may
 * charge.
 */
export async function walkSteps<Answer, Finished>(
  parts: CallParts,
  routed: Routed,
  { start, finish, bytesMax = answerBytesMax }: Way<Answer, Finished>,
): Promise<Walked<Finished> | Failed> {
  const walk = new Walk(parts, routed, bytesMax)
  let used: readonly Counted[] = []
  try {
    let step = start(contextOf(routed, parts.tenantLabel))
    for (let taken = 0; step.kind === 'calls'; taken++) {
      if (taken === stepsMax) throw new GatewayError('bug', 'an adapter came to no end')
      const responses = await walk.make(step)
      if (!Array.isArray(responses)) return responses
      step = step.next(responses)
    }
    used = step.used
    if (step.kind === 'failed') throw step.error
    return { kind: 'done', finished: await finish(step.answer), legs: walk.legs(used), failed: walk.failed }
  } catch (thrown) {
    return walk.fail(asGatewayError(thrown), used)
  }
}

class Walk {
  readonly #parts: CallParts
  readonly #routed: Routed
  readonly #bytesMax: number
  /** Every call that failed, whether or not it was repeated. */
  readonly failed: AttemptRecord[] = []
  /** Calls that were answered, in the adapter's order, with what each used where that can be told. */
  readonly #answered: { readonly leg: Routed; count(): Counted | undefined }[] = []
  #attempts = 0
  #underway = 0
  #hasMade = false
  #mayBeCharged = false

  constructor(parts: CallParts, routed: Routed, bytesMax: number) {
    this.#parts = parts
    this.#routed = routed
    this.#bytesMax = bytesMax
  }

  /** The responses in the order of the calls, or the first failure, after which no further call is begun. */
  async make({ calls, count, take, statusOf }: Calls): Promise<VendorResponse[] | Failed> {
    const made = calls.map((): Taken | undefined => undefined)
    const stop = new AbortController()
    let failure: Failed | undefined
    let next = 0
    const work = async () => {
      for (let index = next++; index < calls.length && !stop.signal.aborted; index = next++) {
        const call = calls[index]
        if (call === undefined) return
        const outcome = await this.#makeOne(call, stop.signal, statusOf)
        if (outcome.kind === 'failed') {
          this.#noteFailed(outcome)
          failure ??= outcome
          stop.abort()
          return
        }
        made[index] = outcome // on record before `take`, which throws for an answer that it cannot read
        if (take === undefined) continue
        const { response } = outcome
        made[index] = { ...outcome, counted: take(response, index), response: { ...response, body: nothing } }
      }
    }
    const thrown = await settledAll(Math.min(sideBySideMax, calls.length), work, stop)
    made.forEach((one, index) => {
      if (one?.leg === undefined) return
      const { leg, response, counted } = one
      this.#answered.push({ leg, count: () => counted ?? count?.(response, index) })
    })
    if (thrown !== undefined) throw thrown.error
    if (failure !== undefined) return this.#giveUp(failure)
    return made.filter((one) => one !== undefined).map(({ response }) => response)
  }

  /** One leg for each call that is on the vendor's bill, with what it used by the adapter's count. */
  legs(used: readonly Counted[]): Leg[] {
    if (used.length !== this.#answered.length) throw new GatewayError('bug', 'an adapter did not count its calls')
    return this.#answered.map(({ leg }, index) => ({ attemptId: leg.attemptId, count: () => used[index] }))
  }

  fail(error: GatewayError, used: readonly Counted[]): Failed {
    const scrubbed = withSecretsScrubbed(error, this.#routed)
    const last = this.#isPaid() ? forbidRetry(scrubbed) : scrubbed
    logFailure(this.#parts, this.#routed, this.#answered.length > 0 ? 200 : 0, last)
    return { kind: 'failed', error: last, retry: 'no', attempts: this.#lost(used) }
  }

  /** A call failed for good. The failure is final if a call beside it was answered or broke off, and may be charged. */
  #giveUp(failure: Failed): Failed {
    const attempts = this.#lost([])
    return this.#isPaid() ? failedBesidePaid(failure, attempts) : { ...failure, attempts }
  }

  #isPaid(): boolean {
    return this.#answered.length > 0 || this.#mayBeCharged
  }

  async #makeOne(call: StepCall, stop: AbortSignal, statusOf: Calls['statusOf']): Promise<Made | Failed> {
    if (call.transport !== 'vendor') return { kind: 'made', response: await this.#fetch(call, stop) }
    let { connection } = this.#routed
    for (let tries = 1; ; tries++) {
      const leg = { ...this.#nextLeg(), connection }
      const headers = { ...call.headers, 'x-client-request-id': leg.attemptId }
      this.#underway++
      const outcome = await attempt(
        this.#parts,
        leg,
        { ...call, headers },
        async (exchange): Promise<VendorResponse> => {
          const response = {
            header: (name: string) => exchange.header(name),
            body: await exchange.readAll(this.#bytesMax),
          }
          const status = statusOf?.(response) ?? 200
          if (status !== 200) throw refusedInside({ status, body: decodeUtf8(response.body) })
          return response
        },
      )
      this.#underway--
      if (outcome.kind === 'accepted') {
        this.#hasMade = true
        return { kind: 'made', response: outcome.accepted, leg }
      }
      // A call is repeated alone only while no other has failed for good. Where all have failed, the line tries another
      // route.
      if (outcome.retry === 'no' || tries === triesMax || stop.aborted || this.#hasFailed()) return outcome
      this.#noteFailed(outcome)
      const until = [abortSignalOf(this.#routed.signal), this.#parts.stopping, stop]
      if (outcome.retry === 'anew') connection = 'new'
      else if (!(await pauseBefore(tries, outcome.error, until))) return { ...outcome, attempts: [] }
    }
  }

  #noteFailed({ attempts, mayBeCharged = false }: Failed): void {
    this.failed.push(...attempts)
    this.#mayBeCharged ||= mayBeCharged
  }

  /** No call was answered, and none is under way. */
  #hasFailed(): boolean {
    return !this.#hasMade && this.#underway === 0
  }

  #nextLeg(): Routed {
    const attemptId = this.#attempts === 0 ? this.#routed.attemptId : newAttemptId()
    this.#attempts++
    return { ...this.#routed, attemptId }
  }

  /** Fetching is free, so it ends when a call beside it fails. A call to the vendor is not, and goes on to its end. */
  #fetch(call: Exclude<StepCall, { transport: 'vendor' }>, stop: AbortSignal): Promise<VendorResponse> {
    return fetchInTime(this.#parts, this.#routed, call, AbortSignal.any([abortSignalOf(this.#routed.signal), stop]))
  }

  /** Records every call so far as useless; where the adapter can tell what a call cost, that is our loss. */
  #lost(used: readonly Counted[]): AttemptRecord[] {
    const legs = this.#answered.map((answered, index): Leg => {
      return { attemptId: answered.leg.attemptId, count: () => used[index] ?? answered.count() }
    })
    return [...this.failed, ...wastedAttempts(this.#routed, legs)]
  }
}

/** Waits for every worker even if one throws, because what the others bought until then has to be on record. */
async function settledAll(workers: number, work: () => Promise<void>, stop: AbortController) {
  let first: { readonly error: unknown } | undefined
  const guarded = async () => {
    try {
      await work()
    } catch (error) {
      first ??= { error }
      stop.abort()
    }
  }
  await Promise.all(Array.from({ length: workers }, guarded))
  return first
}

const nothing = new Uint8Array()

type Calls = Pick<Extract<Step<unknown>, { kind: 'calls' }>, 'calls' | 'count' | 'take' | 'statusOf'>
type Taken = Omit<Made, 'kind'> & { readonly counted?: Counted }
type Made = { readonly kind: 'made'; readonly response: VendorResponse; readonly leg?: Routed }
