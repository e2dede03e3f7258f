import { crashPoint } from '../base/crash-points.ts'
import { GatewayError } from '../base/errors.ts'
import { showDollars, type Nano } from '../base/money.ts'
import type { Billing, TakeOutcome } from '../billing/billing.ts'
import { affordableOutput, holdFor } from '../billing/price.ts'
import type { AskFacts } from '../capabilities/ask.ts'
import type { Model, ModelsOnOffer } from '../catalogue/model.ts'
import { LeavingHold } from './limit.ts'
import { readAsked } from './read-asked.ts'
import type { Admitted, Limited } from './stages.ts'

// A hold counts as abandoned only this long after the longest time that its request may take.
export const holdMarginMs = 60_000

/** Reads and checks the request, then sets its money aside, so that no other request can spend it. */
export function makeAdmit(parts: { models: () => ModelsOnOffer; billing: Billing; totalMs: number }) {
  return async (limited: Limited): Promise<Admitted> => {
    const { pass, job } = limited
    const among = { models: parts.models, capability: job.capability }
    const body = await limited.readBody()
    const { read: errand, model } = readAsked(body, limited, among, (asked, lookUp) => job.read(asked, lookUp))
    const spent = pass.spend(errand)
    if (spent !== undefined) await spent
    const { ask } = errand
    const amount = holdFor(ask.bound, model.prices)
    const taken = await takeHold(limited, ask, model, amount)
    if (taken.kind === 'no-funds') throw noFunds(amount, taken, ask, model)
    crashPoint('after-hold')
    return { ...limited, ask, errand, model, funds: new LeavingHold(taken.hold, pass) }
  }

  function takeHold(limited: Limited, ask: AskFacts, model: Model, amount: Nano): Promise<TakeOutcome> {
    const { principal, requestId, receivedAt } = limited
    return parts.billing.take({
      requestId,
      accountId: principal.accountId,
      keyId: principal.keyId,
      model: ask.model,
      capability: ask.capability,
      amount,
      caps: principal.caps,
      priceVersion: model.prices.version,
      startedAt: receivedAt,
      deadline: receivedAt + parts.totalMs + holdMarginMs,
    })
  }
}

type NoFunds = Exclude<TakeOutcome, { kind: 'hold' }>

// The length of `"max_completion_tokens":1000000,`: a client that follows the advice below may add this field, and must
// still be able to afford the longer input.
const capFieldBytesMax = 32

export function noFunds(
  needed: Nano,
  { available, cap }: Omit<NoFunds, 'kind'>,
  ask: AskFacts,
  model: Model,
): GatewayError {
  const what =
    cap === undefined
      ? 'Insufficient balance'
      : `${nameOfCap(cap)} ${available > 0n ? 'leaves too little' : 'is used up'}`
  const needs = `this request needs up to ${showDollars(needed)} and ${showDollars(available)} is available.`
  const remedy = cap === undefined ? 'add credit' : 'raise the cap'
  return new GatewayError('no-funds', `${what}: ${needs} ${adviceFor(ask, available, model, remedy)}`)
}

function nameOfCap({ of, period }: NonNullable<NoFunds['cap']>): string {
  return `The spending cap of this ${of.keyId === undefined ? 'account' : 'key'} (${period})`
}

function adviceFor({ capability, bound }: AskFacts, available: Nano, model: Model, remedy: string): string {
  const { input = 0, request = 1 } = bound
  if (capability !== 'chat') return `${remedy.replace(/^./, (first) => first.toUpperCase())} to go on.`
  const advised = { ...bound, input: input + request * capFieldBytesMax }
  const affordable = Math.floor(affordableOutput(available, advised, model.prices) / request)
  return affordable > 0
    ? `It affords ${affordable} output tokens: lower the cap on output tokens, or ${remedy}.`
    : `It affords no output tokens for an input of this size: ${remedy}.`
}
