import { existsSync, readFileSync, statSync } from 'node:fs'
import { isHttpUrl } from '../base/http-url.ts'
import { parseMoment } from '../base/moment.ts'
import { formatDollars, nano, showDollars } from '../base/money.ts'
import { readBill, readExport, type BillLine } from '../billing/reconcile/bill.ts'
import type { Finding } from '../billing/reconcile/compare.ts'
import {
  reconcile as compareBooks,
  repair,
  verdictOn,
  type Repairs,
  type Report,
  type Verdict,
} from '../billing/reconcile/reconcile.ts'
import { holdMarginMs } from '../flow/admit.ts'
import { vendors } from '../vendors/index.ts'
import { ifGiven } from './options.ts'
import { actor, inEitherMode, type Installation } from './installation.ts'
import { counted, say, sayJson, sheet, showTime, table, type Column } from './output.ts'
import { loadSettings } from './settings.ts'

type Options = {
  readonly config?: string
  readonly json?: boolean
  readonly since?: string
  readonly bill?: string
  readonly vendorExport?: string
  readonly vendor?: string
  readonly repair?: 'dry' | 'apply'
}

/** `turnpike reconcile`: checks the books against themselves and a vendor's bill. Works beside running gateways. */
export async function reconcile(options: Options): Promise<void> {
  const since = ifGiven(options.since, readSince)
  // A misspelt vendor has no calls on record, and an empty bill would agree with that.
  if (options.vendor !== undefined && !vendors.has(options.vendor)) {
    throw new Error(`there is no vendor "${options.vendor}": --vendor takes one of ${[...vendors.keys()].join(', ')}`)
  }
  // The bill is read before the books, so that every call on it had been sent by the time the books are read.
  const bill = await readAnyBill(options)
  // Recorded calls are looked for by the vendors on the bill, so an empty or wrong file would agree with everything.
  if (bill?.length === 0 && options.vendor === undefined) {
    throw new Error('the bill has no lines; if that is correct, name its vendor with --vendor')
  }
  await inEitherMode(options, async ({ store, plan }) => {
    const { totalSeconds } = loadSettings(options.config).file.settings.timeouts
    const { vendor } = options
    const parts = {
      store,
      bill,
      since,
      vendor,
      priceLists: await priceLists(plan),
      requestMsMax: totalSeconds * 1000 + holdMarginMs,
    }
    const found = await compareBooks(parts)
    const repairs = options.repair === 'apply' ? await repair(store, found.findings, { actor, vendor }) : undefined
    const report = repairs === undefined ? found : await compareBooks(parts)
    const verdict = repairs !== undefined && repairs.failed.length > 0 ? 1 : verdictOn(report)
    if (options.json) sayJson(show(report, repairs, verdict))
    else describe(report, repairs, verdict, { ...options, hasBill: bill !== undefined })
    process.exitCode = verdict
  })
}

async function readAnyBill({ bill, vendorExport }: Options): Promise<BillLine[] | undefined> {
  if (bill !== undefined && vendorExport !== undefined) throw new Error('give --bill or --vendor-export, not both')
  if (vendorExport !== undefined) {
    if (!existsSync(vendorExport)) throw new Error(`there is no file ${vendorExport}`)
    if (statSync(vendorExport).isDirectory()) throw new Error(`${vendorExport} is a folder, not a bill`)
    return readExport(readFileSync(vendorExport, 'utf8'))
  }
  if (bill === undefined) return undefined
  if (!isHttpUrl(bill)) {
    throw new Error(
      `--bill takes an address such as https://vendor.example/bill, not "${bill}"; a file: --vendor-export`,
    )
  }
  const response = await fetch(bill).catch((cause: unknown) => {
    throw new Error(`the bill cannot be fetched: nothing answers at ${bill}`, { cause })
  })
  if (!response.ok) throw new Error(`the bill at ${bill} cannot be read: it answers ${response.status}`)
  return readBill(await response.text())
}

function readSince(text: string): number {
  const since = parseMoment(text)
  if (since === undefined)
    throw new Error(`--since takes a date or a time with its zone, such as 2027-01-31, not "${text}"`)
  return since
}

/** The price lists in use now. A charge by an older list is not recalculated. */
async function priceLists(plan: Installation['plan']): Promise<Parameters<typeof compareBooks>[0]['priceLists']> {
  const { catalogue } = await plan()
  return (model, version) => {
    const lists = catalogue.models.get(model)
    return lists?.prices.version === version ? lists : undefined
  }
}

const kinds = ['estimated', 'amount-differs', 'vendor-only', 'ledger-only'] as const satisfies Finding['kind'][]

function totalsOf(findings: readonly Finding[], kind: Finding['kind']) {
  const some = findings.filter((finding) => finding.kind === kind)
  const sum = (amount: (finding: Finding) => bigint) => nano(some.reduce((total, one) => total + amount(one), 0n))
  return { calls: some.length, billed: sum(({ billed }) => billed), recorded: sum(({ recorded }) => recorded) }
}

const verdicts: Readonly<Record<Verdict, string>> = {
  0: 'clean',
  1: 'BROKEN: the findings above contradict the ledger or could not be booked',
  2: 'open items, each explained above',
}

function describe(
  report: Report,
  repairs: Repairs | undefined,
  verdict: Verdict,
  options: Options & { readonly hasBill: boolean },
): void {
  const { breaches, findings } = report
  say(sheet({ invariants: breaches.length === 0 ? 'I1 to I8 hold' : counted(breaches.length, 'breach', 'breaches') }))
  for (const { rule, subject, why } of breaches) say(`  ${rule} ${subject}: ${why}`)
  if (options.hasBill) describeTotals(report)
  if (findings.length > 0) say(`\n${table(findingColumns, findings)}`)
  describeClaims(report)
  if (options.repair === 'dry') describeRepair('would book', findings)
  if (repairs !== undefined) describeRepair('booked', repairs.booked)
  for (const { finding, error } of repairs?.failed ?? []) say(`could not book what mends ${finding.ref}: ${error}`)
  say(`\n${verdicts[verdict]}`)
}

/** How far the bill and the books agree. */
function describeTotals({ matched, matchedEstimated, findings }: Report): void {
  const agreed = `${counted(matched.calls, 'call')}, ${showDollars(matched.amount)}`
  say(sheet({ matched: `${agreed} (${matchedEstimated} estimated)` }))
  for (const kind of kinds) {
    const { calls, billed, recorded } = totalsOf(findings, kind)
    if (calls === 0) continue
    const amounts = `billed ${showDollars(billed)}, recorded ${showDollars(recorded)}`
    say(sheet({ [kind]: `${counted(calls, 'call')}, ${amounts}` }))
  }
}

/** What nodes hold of balances, and what to do about nodes that may be gone. */
function describeClaims({ claims, silentNodes }: Report): void {
  if (claims.leases.length > 0) say(`\n${table(leaseColumns, claims.leases)}`)
  if (claims.holds.length > 0) say(`\n${table(holdColumns, claims.holds)}`)
  for (const node of silentNodes) {
    say(
      `\n${node} holds leases but has long been silent. Start it again, so that it posts what is in its journal; only`,
    )
    say(`if its disk is lost: turnpike ledger reclaim --node ${node} --confirm`)
  }
}

function describeRepair(word: string, findings: readonly Finding[]): void {
  say()
  const some = findings.filter(({ repair }) => repair !== undefined)
  for (const { ref, repair, billed, recorded, credit } of some) {
    const what = repair?.kind === 'adopt' ? 'loss' : 'correction'
    const given = credit > 0n ? `, ${showDollars(credit)} back to the customer` : ''
    say(`${word} a ${what} of ${showDollars(nano(billed - recorded))} for ${ref}${given}`)
  }
  say(`${word} ${some.length} in all`)
}

const findingColumns: readonly Column<Finding>[] = [
  { name: 'KIND', show: ({ kind }) => kind },
  { name: 'REF', show: ({ ref }) => ref },
  { name: 'BILLED', align: 'right', show: ({ billed }) => showDollars(billed) },
  { name: 'RECORDED', align: 'right', show: ({ recorded }) => showDollars(recorded) },
  { name: 'WHY', show: ({ why }) => why },
]

const leaseColumns: readonly Column<Report['claims']['leases'][number]>[] = [
  { name: 'LEASE OF', show: ({ node }) => node },
  { name: 'ACCOUNT', show: ({ accountId }) => accountId },
  { name: 'AMOUNT', align: 'right', show: ({ amount }) => showDollars(amount) },
  { name: 'LAST HEARD OF', show: ({ seenAt }) => showTime(seenAt) },
]

const holdColumns: readonly Column<Report['claims']['holds'][number]>[] = [
  { name: 'OPEN HOLD', show: ({ id }) => id },
  { name: 'NODE', show: ({ node }) => node },
  { name: 'ACCOUNT', show: ({ accountId }) => accountId },
  { name: 'AMOUNT', align: 'right', show: ({ amount }) => showDollars(amount) },
  { name: 'SINCE', show: ({ createdAt }) => showTime(createdAt) },
]

function show(report: Report, repairs: Repairs | undefined, verdict: Verdict) {
  const { breaches, claims, findings, matched } = report
  const totals = kinds.map((kind) => {
    const { calls, billed, recorded } = totalsOf(findings, kind)
    return [kind, { calls, billed: formatDollars(billed), recorded: formatDollars(recorded) }] as const
  })
  return {
    verdict,
    breaches,
    matched: { calls: matched.calls, amount: formatDollars(matched.amount), estimated: report.matchedEstimated },
    totals: Object.fromEntries(totals),
    findings: findings.map(showFinding),
    repaired: (repairs?.booked ?? []).map(showFinding),
    not_repaired: (repairs?.failed ?? []).map(({ finding, error }) => ({ ...showFinding(finding), error })),
    leases: claims.leases.map((lease) => ({ ...lease, amount: formatDollars(lease.amount) })),
    holds: claims.holds.map((hold) => ({ ...hold, amount: formatDollars(hold.amount) })),
    silent_nodes: report.silentNodes,
  }
}

function showFinding({ kind, ref, billed, recorded, credit, why, repair }: Finding) {
  return {
    kind,
    ref,
    billed: formatDollars(billed),
    recorded: formatDollars(recorded),
    credit: formatDollars(credit),
    why,
    repairable: repair !== undefined,
  }
}
