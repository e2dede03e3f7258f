import { nano, parseDollars, type Nano } from '../../src/base/money.ts'
import type { Store } from '../../src/store/open.ts'
import type { Load } from './load.ts'
import { pause, perToken, type Funded, type World } from './world.ts'

/** The result of a campaign. Each entry of `wrong` describes a failure. */
export type Outcome = {
  readonly requests: number
  readonly recorded: number
  readonly charged: Nano
  readonly estimated: number
  readonly vendorCalls: number
  readonly vendorTotal: Nano
  /** The bill minus the books, over all calls. */
  readonly difference: Nano
  readonly duplicates: number
  readonly holdsLeft: number
  readonly corrected: number
  readonly creditedBack: Nano
  readonly clientsSawEnd: number
  readonly wrong: readonly string[]
}

type Line = { ref: string; status: number; units: Record<string, number>; cost: string }
type Finding = { kind: string; ref: string; credit: string; why: string }
type Reconciled = { verdict: number; breaches: unknown[]; findings: Finding[]; repaired: Finding[]; leases: unknown[] }

export type Payer = Omit<Funded, 'key'> & { readonly idempotent: boolean }

/** Reconciles as an operator does, and then checks the books independently. */
export async function judge(world: World, load: Load, accounts: readonly Payer[]): Promise<Outcome> {
  const bill = await settledBill(world)
  const wrong: string[] = []
  const args = ['reconcile', '--bill', world.billUrl, '--repair', 'apply', '--json']
  const first = await world.command(args)
  const second = await world.command(args)
  const report = readReport(first, wrong)
  const again = readReport(second, wrong)
  if (first.code !== 0) wrong.push(`reconcile gave ${first.code}: ${describe(report)} ${first.err}`)
  if (second.code !== 0) wrong.push(`the second reconcile gave ${second.code}: ${describe(again)} ${second.err}`)
  if ((again?.repaired.length ?? 0) > 0) wrong.push(`the second reconcile booked ${again?.repaired.length} again`)

  const store = await world.openStore()
  try {
    const vendor = await vendorSide(store, bill, wrong)
    const customers = await customerSide(store, accounts, load, bill, wrong)
    await seenByClients(store, load, wrong)
    return {
      requests: load.seen.filter(({ saw }) => saw !== 'nothing').length,
      ...customers,
      ...vendor,
      holdsLeft: await holdsLeft(store, wrong),
      corrected: report?.repaired.length ?? 0,
      creditedBack: total((report?.repaired ?? []).map(({ credit }) => parseDollars(credit) ?? 0n)),
      clientsSawEnd: load.seen.filter(({ saw }) => saw === 'end').length,
      wrong,
    }
  } finally {
    await store.close()
  }
}

/** The vendor notices a moment later than we do that a gateway is gone. */
async function settledBill(world: World): Promise<Line[]> {
  let lines: Line[] = []
  for (let quiet = 0; quiet < 2;) {
    const { data } = (await (await fetch(world.billUrl)).json()) as { data: Line[] }
    quiet = data.length === lines.length ? quiet + 1 : 0
    lines = data
    await pause(250)
  }
  return lines
}

function readReport({ out }: { out: string }, wrong: string[]): Reconciled | undefined {
  try {
    return JSON.parse(out) as Reconciled
  } catch {
    wrong.push(`reconcile printed no report: ${out.slice(0, 500)}`)
    return undefined
  }
}

function describe(report: Reconciled | undefined): string {
  return JSON.stringify({ breaches: report?.breaches, findings: report?.findings.slice(0, 5), leases: report?.leases })
}

async function vendorSide(store: Store, bill: readonly Line[], wrong: string[]) {
  const attempts = await store.db.selectFrom('attempt').select(['id', 'vendor_cost']).execute()
  const recorded = new Map(attempts.map(({ id, vendor_cost: cost }) => [id, cost]))
  const refs = new Set<string>()
  let difference = 0n
  let duplicates = 0
  for (const { ref, cost } of bill) {
    if (refs.has(ref)) duplicates++
    refs.add(ref)
    const ours = recorded.get(ref)
    const theirs = parseDollars(cost) ?? 0n
    difference += theirs - (ours ?? 0n)
    if (ours !== theirs) wrong.push(`call ${ref} costs ${theirs} on the bill, ${ours ?? 'nothing'} in the books`)
  }
  for (const [id, cost] of recorded) {
    if (!refs.has(id) && cost !== 0n) wrong.push(`call ${id} costs ${cost} in the books and is on no bill`)
  }
  const billed = bill.filter(({ cost }) => cost !== '0')
  return {
    vendorCalls: billed.length,
    vendorTotal: total(billed.map(({ cost }) => parseDollars(cost) ?? 0n)),
    difference: nano(difference),
    duplicates,
  }
}

async function customerSide(
  store: Store,
  accounts: readonly Payer[],
  load: Load,
  bill: readonly Line[],
  wrong: string[],
) {
  const rows = await store.db
    .selectFrom('request')
    .select(['id', 'account_id', 'status', 'cost', 'basis', 'usage'])
    .execute()
  const delivered = await store.db
    .selectFrom('attempt')
    .select(['id', 'request_id'])
    .where('status', '=', 200)
    .execute()
  const attemptOf = new Map(delivered.map(({ id, request_id: requestId }) => [requestId, id]))
  const lines = new Map(bill.map((line) => [line.ref, line]))
  for (const { id, basis, cost, usage } of rows) {
    if (basis !== 'vendor') continue
    const units = lines.get(attemptOf.get(id) ?? '')?.units
    const input = (usage?.input ?? 0) + (usage?.cachedInput ?? 0)
    const output = usage?.output ?? 0
    const price = BigInt(input) * perToken.input + BigInt(output) * perToken.output
    if (price !== cost) wrong.push(`request ${id} was charged ${cost}, its units are worth ${price}`)
    if (units?.['output'] !== output) wrong.push(`request ${id} counts ${output} tokens, the bill ${units?.['output']}`)
  }
  for (const account of accounts) {
    const own = rows.filter((row) => row.account_id === account.id)
    const { posted } = await store.db
      .selectFrom('account')
      .select('posted')
      .where('id', '=', account.id)
      .executeTakeFirstOrThrow()
    const charged = total(own.map(({ cost }) => cost))
    if (posted < 0n) wrong.push(`account ${account.name} stands at ${posted}`)
    if (charged + posted !== account.credit) {
      wrong.push(`account ${account.name}: ${charged} charged and ${posted} left of ${account.credit}`)
    }
    const paid = own.filter(({ cost }) => cost > 0n).length
    if (account.idempotent && paid > load.idempotencyKeys.size) {
      wrong.push(`${paid} charges under ${load.idempotencyKeys.size} idempotency keys`)
    }
  }
  return {
    recorded: rows.length,
    charged: total(rows.map(({ cost }) => cost)),
    estimated: rows.filter(({ basis }) => basis === 'estimated').length,
  }
}

/** Every client that saw the end of an answer must have exactly one settled request on record. */
async function seenByClients(store: Store, load: Load, wrong: string[]): Promise<void> {
  const rows = await store.db
    .selectFrom('request')
    .leftJoin('txn', 'txn.id', 'request.hold_id')
    .select(['request.id', 'request.status', 'request.basis', 'request.cost', 'txn.kind'])
    .execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  const ended = load.seen.flatMap(({ saw, requestId }) => (saw === 'end' && requestId !== undefined ? [requestId] : []))
  for (const id of ended) {
    const row = byId.get(id)
    const isSettled = row?.status === 200 && (row.basis === 'vendor' || row.basis === 'estimated')
    if (!isSettled || (row.cost > 0n && row.kind !== 'settle')) {
      wrong.push(`a client saw the end of ${id}, its record is ${row === undefined ? 'missing' : row.basis}`)
    }
  }
  if (new Set(ended).size !== ended.length) wrong.push('two answers carried one request id')
}

async function holdsLeft(store: Store, wrong: string[]): Promise<number> {
  const holds = await store.db.selectFrom('hold').select('id').where('state', '=', 'open').execute()
  const leases = await store.db.selectFrom('lease').select('node').where('amount', '>', nano(0n)).execute()
  const held = await store.db.selectFrom('account').select('id').where('held', '<>', nano(0n)).execute()
  if (holds.length + leases.length + held.length > 0) {
    wrong.push(`${holds.length} holds, ${leases.length} leases and ${held.length} accounts with held money are left`)
  }
  return holds.length + leases.length
}

function total(amounts: readonly bigint[]): Nano {
  return nano(amounts.reduce((sum, amount) => sum + amount, 0n))
}
