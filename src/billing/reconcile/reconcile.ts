import { messageOf } from '../../base/errors.ts'
import { nano, zeroNano, type Nano } from '../../base/money.ts'
import type { Actor } from '../../store/audit.ts'
import { checkLedger, type Breach } from '../../store/check.ts'
import { adoptAttempt, correctAttempts, type Corrected } from '../../store/corrections.ts'
import type { Store } from '../../store/open.ts'
import {
  attemptsByIds,
  costlyAttempts,
  openLeasesAndHolds,
  vendorOfModel,
  type OpenLeasesAndHolds,
  type RecordedAttempt,
} from '../../store/reconcile.ts'
import { openTaskRefs } from '../../store/task-lists.ts'
import { byRef, type BillLine } from './bill.ts'
import { compare, ledgerOnly, ofRunningTask, vendorOnly, type Finding, type OpenSince } from './compare.ts'
import { creditsFor, type PriceListsOf } from './credit.ts'

export type ReconcileOptions = {
  readonly store: Store
  /** Must be read before this is called, so that every call on it was sent before the books are looked at. */
  readonly bill?: readonly BillLine[] | undefined
  /** Unix milliseconds; calls recorded before then are not expected on the bill. */
  readonly since?: number | undefined
  /** Whose bill it is, where its lines do not tell. */
  readonly vendor?: string | undefined
  readonly priceLists: PriceListsOf
  /** The longest that a request can last. */
  readonly requestMsMax: number
}

export type Totals = { readonly calls: number; readonly amount: Nano }

export type Report = {
  readonly breaches: readonly Breach[]
  readonly claims: OpenLeasesAndHolds
  /** Nodes that hold leases and have not been heard of for a while. */
  readonly silentNodes: readonly string[]
  /** Calls on which bill and books agree, and what both say. */
  readonly matched: Totals
  /** How many of the matched calls were charged by an estimate. */
  readonly matchedEstimated: number
  readonly findings: readonly Finding[]
}

/** 0 clean, 2 explained by open items, 1 broken. */
export type Verdict = 0 | 1 | 2

export function verdictOn({ breaches, findings, silentNodes }: Report): Verdict {
  if (breaches.length > 0 || findings.some(({ kind }) => kind === 'amount-differs')) return 1
  return findings.length > 0 || silentNodes.length > 0 ? 2 : 0
}

// A live node gives back unused leases within seconds and is heard of while it has any. This leaves it time to restart.
const silentAfterMs = 5 * 60_000

/** Checks that the books are consistent, and compares them with a vendor's bill if there is one. Changes nothing. */
export async function reconcile(options: ReconcileOptions): Promise<Report> {
  const { store, bill } = options
  const now = store.now()
  const { lines, nameless, repeated } = byRef(bill ?? [])
  const breaches = [...(await checkLedger(store))]
  for (const [ref, times] of repeated) {
    breaches.push({ rule: 'I6', subject: ref, why: `${times} lines of the bill name this one call` })
  }
  // Claims are read before attempts, so that a call that is posted in between is found as an attempt.
  const claims = await openLeasesAndHolds(store.db)
  const silent = claims.leases.filter(({ seenAt }) => seenAt < now - silentAfterMs)
  const compared = bill === undefined ? nothing : await compareAll(options, { lines, nameless, repeated, claims, now })
  return { breaches, claims, silentNodes: [...new Set(silent.map(({ node }) => node))], ...compared }
}

type Compared = Pick<Report, 'matched' | 'matchedEstimated' | 'findings'>

const nothing: Compared = { matched: { calls: 0, amount: zeroNano }, matchedEstimated: 0, findings: [] }

async function compareAll(
  { store, since = 0, vendor, priceLists, requestMsMax }: ReconcileOptions,
  seen: ReturnType<typeof byRef> & { claims: OpenLeasesAndHolds; now: number },
): Promise<Compared> {
  const { lines, nameless, repeated, claims, now } = seen
  const open = openSince(claims, requestMsMax)
  const attempts = await attemptsByIds(store.db, [...lines.keys()])
  const credits = await creditsFor(store.db, attempts, { lines, repeated, now, priceLists })
  const recorded = compareRecorded(lines, attempts, credits)
  const findings = [...nameless.map((line) => vendorOnly(line, open)), ...recorded.findings]
  const known = new Set(attempts.map(({ id }) => id))
  const unknown = new Map([...lines].filter(([ref]) => !known.has(ref)))
  const running = await openTaskRefs(store.db, [...unknown.keys()])
  for (const [ref, line] of unknown) {
    findings.push(running.has(ref) ? ofRunningTask(line, ref) : vendorOnly(line, open))
  }
  // Unless a vendor is given, the bill covers the vendors whose calls it names.
  const vendors = vendor === undefined ? [...new Set(attempts.map((attempt) => attempt.vendor))] : [vendor]
  for await (const attempt of allCostly(store, vendors, since)) {
    if (!lines.has(attempt.id)) findings.push(ledgerOnly(attempt))
  }
  return { ...recorded, findings }
}

/** Compares the calls that are on record with their lines of the bill. */
function compareRecorded(
  lines: ReadonlyMap<string, BillLine>,
  attempts: readonly RecordedAttempt[],
  credits: ReadonlyMap<string, Nano>,
): Compared {
  const findings: Finding[] = []
  let calls = 0
  let amount = 0n
  let matchedEstimated = 0
  for (const attempt of attempts) {
    const line = lines.get(attempt.id)
    if (line === undefined) continue
    const finding = compare(line, attempt, credits.get(attempt.id) ?? zeroNano)
    if (finding !== undefined) {
      findings.push(finding)
      continue
    }
    calls++
    amount += line.cost
    if (attempt.request?.basis === 'estimated') matchedEstimated++
  }
  return { matched: { calls, amount: nano(amount) }, matchedEstimated, findings }
}

const pageSize = 1_000

async function* allCostly(store: Store, vendors: readonly string[], since: number) {
  let after = ''
  for (;;) {
    const page = await costlyAttempts(store.db, { vendors, since, after, limit: pageSize })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize) return
    after = last.id
  }
}

/**
 * A call that is under way has no record yet, and the record of a dead node's call is in that node's journal. As long
 * as a lease or hold is open under which the call may have been made, it may still be recorded, and must not be booked
 * a second time. A line that says when it was made is free of that doubt if every claim is younger than that by more
 * than the longest request.
 */
function openSince({ leases, holds }: OpenLeasesAndHolds, requestMsMax: number): OpenSince {
  const since = Math.min(...leases.map(({ seenAt }) => seenAt), ...holds.map(({ createdAt }) => createdAt))
  return { mayStillCome: ({ at }) => (at === undefined ? since < Infinity : at + requestMsMax >= since) }
}

/** What became of the repairs. A finding that another run has corrected meanwhile is in neither list. */
export type Repairs = {
  readonly booked: readonly Finding[]
  readonly failed: readonly { readonly finding: Finding; readonly error: string }[]
}

/** Who repairs, and whose bill it is, where its lines do not tell. */
type RepairedBy = { readonly actor: Actor; readonly vendor?: string | undefined }

/**
 * Books the repairs of the findings, all those of one request in one transaction. A repair that cannot be booked is
 * reported, and does not keep the others from being booked. A second run finds nothing left to do.
 */
export async function repair(store: Store, findings: readonly Finding[], by: RepairedBy): Promise<Repairs> {
  const booked: Finding[] = []
  const failed: { finding: Finding; error: string }[] = []
  for (const some of byRequest(findings)) {
    try {
      if ((await bookTogether(store, some, by)) === 'corrected') booked.push(...some)
    } catch (thrown) {
      const error = messageOf(thrown)
      failed.push(...some.map((finding) => ({ finding, error })))
    }
  }
  return { booked, failed }
}

/** A credit is right only together with the corrections it was judged by, so a request's findings stay together. */
function byRequest(findings: readonly Finding[]): Finding[][] {
  const groups = new Map<string, Finding[]>()
  for (const finding of findings) {
    const { repair, ref } = finding
    if (repair === undefined) continue
    const group = (repair.kind === 'correct' ? repair.attempt.request?.id : undefined) ?? ref
    groups.set(group, [...(groups.get(group) ?? []), finding])
  }
  return [...groups.values()]
}

async function bookTogether(
  store: Store,
  findings: readonly Finding[],
  { actor, vendor }: RepairedBy,
): Promise<Corrected | 'nothing'> {
  const corrections = findings.flatMap(({ repair, billed, credit, why }) =>
    repair?.kind === 'correct'
      ? [{ attempt: repair.attempt, billed, credit, usage: repair.units ?? null, note: noteOf(why) }]
      : [],
  )
  if (corrections.length > 0) return correctAttempts(store, corrections, actor)
  const [found] = findings
  if (found?.repair?.kind !== 'adopt') return 'nothing'
  const { ref, billed, why, repair } = found
  const { model = '', at = store.now() } = repair.line
  const from = vendor ?? (await vendorOfModel(store.db, model)) ?? 'unknown'
  return adoptAttempt(store, { ref, vendor: from, upstreamModel: model, billed, at, note: noteOf(why) })
}

function noteOf(why: string): string {
  return `reconciled: ${why}`
}
