import { isAttemptId } from '../../base/ids.ts'
import { zeroNano, type Nano } from '../../base/money.ts'
import type { Counts } from '../../capabilities/usage.ts'
import type { RecordedAttempt } from '../../store/reconcile.ts'
import { crashedStatus } from '../record.ts'
import type { BillLine } from './bill.ts'

/** Where the bill and the books disagree on one call. */
export type Finding = {
  readonly kind: 'estimated' | 'amount-differs' | 'vendor-only' | 'ledger-only'
  /** The attempt's id, or what the vendor's line has in its place. */
  readonly ref: string
  readonly billed: Nano
  readonly recorded: Nano
  readonly why: string
  /** What the customer gets back for the whole request, where an estimate came out above what the vendor counted. */
  readonly credit: Nano
  /** The posting that would correct the books, if one can. */
  readonly repair: Repair | undefined
}

export type Repair =
  | { readonly kind: 'correct'; readonly attempt: RecordedAttempt; readonly units: Counts | undefined }
  | { readonly kind: 'adopt'; readonly line: BillLine }

/** Undefined where the bill and the books agree. `credit` is what the customer gets back along with the correction. */
export function compare(line: BillLine, attempt: RecordedAttempt, credit: Nano): Finding | undefined {
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
function isExact({ delivered, request }: RecordedAttempt): boolean {
  return request?.basis === 'vendor' && delivered
}

/** What happened, as far as the records tell. */
function explain(attempt: RecordedAttempt): string {
  const { delivered, request } = attempt
  if (request === undefined) return 'found on a bill before, and billed otherwise now'
  if (isExact(attempt)) return "the vendor's own usage at our cost prices comes to another sum"
  if (request.basis === 'vendor') return 'a failed attempt, charged by the vendor; another one was delivered'
  if (request.basis === 'policy_zero') {
    return request.status === crashedStatus
      ? 'a gateway ended or failed during the call; nothing is known to have been delivered, so the customer paid nothing'
      : 'nothing was delivered, so the customer paid nothing; the vendor charged'
  }
  if (!delivered) return 'an attempt of which nothing was delivered, charged by the vendor'
  return estimates[request.status] ?? (request.status < 400 ? 'charged by an estimate' : brokeOff)
}

const brokeOff = 'the answer broke off, and what had come was estimated'

const estimates: Readonly<Record<number, string>> = {
  200: 'the vendor reported no usage',
  499: 'the client left, and what it had got was estimated',
  [crashedStatus]:
    'a gateway ended or failed during the call: charged as of its last mark, or of what it had delivered',
  503: `${brokeOff}: the vendor was overloaded, or a gateway was being stopped`,
  504: `${brokeOff}: the vendor took too long`,
}

export function vendorOnly(line: BillLine, open: OpenSince): Finding {
  const shared = { kind: 'vendor-only', billed: line.cost, recorded: zeroNano, credit: zeroNano } as const
  if (line.ref === null || !isAttemptId(line.ref)) {
    const why = 'the line names no call of ours, so it cannot be told from calls made without the gateway'
    return { ...shared, ref: line.ref ?? line.model ?? 'nameless', why, repair: undefined }
  }
  if (open.mayStillCome(line)) {
    const why = 'not recorded yet: a lease or hold is open under which it may still be'
    return { ...shared, ref: line.ref, why, repair: undefined }
  }
  const why = 'never recorded: its gateway ended before it could, or its journal was lost'
  return { ...shared, ref: line.ref, why, repair: { kind: 'adopt', line } }
}

/** The cost of a task is recorded only when the task ends, even if the vendor billed the call long before. */
export function ofRunningTask(line: BillLine, ref: string): Finding {
  const why = 'not recorded yet: its video task is not over'
  return { kind: 'vendor-only', ref, billed: line.cost, recorded: zeroNano, credit: zeroNano, why, repair: undefined }
}

/** Tells whether a call that is not on record may still be recorded, from a journal that is not posted yet. */
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
