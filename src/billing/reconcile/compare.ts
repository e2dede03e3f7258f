import { nano, zeroNano, type Nano } from '../../base/money.ts'
import type { Counts, PriceList } from '../../capabilities/usage.ts'
import type { RecordedAttempt } from '../../store/reconcile.ts'
import { priceOf } from '../price.ts'
import type { BillLine } from './bill.ts'

/** Where the bill and the books disagree on one call. */
export type Finding = {
  readonly kind: 'estimated' | 'amount-differs' | 'vendor-only' | 'ledger-only'
  /** The attempt's id, or what the vendor's line says in its place. */
  readonly ref: string
  readonly billed: Nano
  readonly recorded: Nano
  readonly why: string
  /** What the customer gets back: an estimate came out above what the vendor counted. */
  readonly credit: Nano
  /** What mends it, if anything here can. */
  readonly repair: Repair | undefined
}

export type Repair =
  | { readonly kind: 'correct'; readonly attempt: RecordedAttempt; readonly units: Counts | undefined }
  | { readonly kind: 'adopt'; readonly line: BillLine }

/** Finds the price list that a charge was made by; undefined where it is not in use any more. */
export type PriceListOf = (model: string, version: string) => PriceList | undefined

// An estimate stands once the vendor had this long to say otherwise.
const creditWithinMs = 72 * 3_600_000

/** Undefined where they agree. */
export function compare(
  line: BillLine,
  attempt: RecordedAttempt,
  { now, priceList }: { readonly now: number; readonly priceList: PriceListOf },
): Finding | undefined {
  const credit = creditFor(line, attempt, now, priceList)
  if (line.cost === attempt.cost && credit === zeroNano) return undefined
  return {
    kind: isExact(attempt) ? 'amount-differs' : 'estimated',
    ref: attempt.id,
    billed: line.cost,
    recorded: attempt.cost,
    why: explain(attempt),
    credit,
    repair: { kind: 'correct', attempt, units: line.units },
  }
}

/** A cost worked out from the vendor's own usage should be the vendor's own cost. */
function isExact({ status, request }: RecordedAttempt): boolean {
  return request?.basis === 'vendor' && status === 200
}

/**
 * Only an estimate is ever made good, only downwards, and only where both what the vendor counted and the price list
 * that the request was sold by are known.
 */
function creditFor(line: BillLine, { status, request }: RecordedAttempt, now: number, priceList: PriceListOf): Nano {
  if (line.units === undefined || request === undefined || request.basis !== 'estimated') return zeroNano
  // An attempt that failed, and was followed by another, was never charged: there is nothing to compare with.
  if (!request.delivered || (status !== 200 && status !== 0) || now - request.createdAt > creditWithinMs)
    return zeroNano
  // Seconds of video and pictures are no counts of ours on a bill: what was charged for them is not judged anew.
  if (line.cost > 0n && Object.keys(line.units).length === 0) return zeroNano
  const prices = request.priceVersion === null ? undefined : priceList(request.model, request.priceVersion)
  if (prices === undefined) return zeroNano
  const isBilled = line.cost > 0n || Object.keys(line.units).length > 0
  const fair = isBilled ? priceOf({ ...line.units, request: 1 }, prices) : zeroNano
  return fair < request.cost ? nano(request.cost - fair) : zeroNano
}

/** What happened, as far as the records tell. */
function explain({ status, cost, request }: RecordedAttempt): string {
  if (request === undefined) return 'found on a bill before, and billed otherwise now'
  if (request.basis === 'vendor' && status === 200)
    return "the vendor's own usage at our cost prices comes to another sum"
  if (request.basis === 'vendor') return 'a failed attempt, charged by the vendor; another one was delivered'
  if (request.basis === 'policy_zero') {
    return request.status === crashed
      ? 'a gateway ended during the call; nothing is known to have been delivered, so the customer paid nothing'
      : 'nothing was delivered, so the customer paid nothing; the vendor charged'
  }
  if (status !== 200 && status !== 0 && cost === zeroNano) return 'a failed attempt, charged by the vendor'
  return estimates[request.status] ?? 'charged by an estimate'
}

const crashed = 500
const estimates: Readonly<Record<number, string>> = {
  200: 'the vendor reported no usage',
  499: 'the client left, and what it had got was estimated',
  500: 'a gateway ended during the call: charged as of the last mark in its journal',
  502: 'the vendor broke off, and what had come was estimated',
}

export function vendorOnly(line: BillLine, open: OpenSince): Finding {
  const shared = { kind: 'vendor-only', billed: line.cost, recorded: zeroNano, credit: zeroNano } as const
  if (line.ref === null) {
    const why = 'the line names no call of ours, so it cannot be told from calls made without the gateway'
    return { ...shared, ref: line.model ?? 'nameless', why, repair: undefined }
  }
  if (open.mayStillCome(line)) {
    const why = 'not recorded yet: a lease or hold is open under which it may still be'
    return { ...shared, ref: line.ref, why, repair: undefined }
  }
  const why = 'never recorded: its gateway ended before it could, or its journal was lost'
  return { ...shared, ref: line.ref, why, repair: { kind: 'adopt', line } }
}

/** A task's cost is recorded at its end, however long ago the vendor made it. */
export function ofRunningTask(line: BillLine, ref: string): Finding {
  const why = 'not recorded yet: its video task is not over'
  return { kind: 'vendor-only', ref, billed: line.cost, recorded: zeroNano, credit: zeroNano, why, repair: undefined }
}

/** Whether a call that is not on record may be recorded later, by a journal that is not read yet. */
export type OpenSince = { mayStillCome(line: BillLine): boolean }

export function ledgerOnly(attempt: RecordedAttempt): Finding {
  return {
    kind: 'ledger-only',
    ref: attempt.id,
    billed: zeroNano,
    recorded: attempt.cost,
    why: 'the vendor has not billed it; the bill may end before it, or start after it (--since)',
    credit: zeroNano,
    repair: undefined,
  }
}
