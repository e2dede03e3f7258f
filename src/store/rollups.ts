import { CompiledQuery } from 'kysely'
import { nano, type Nano } from '../base/money.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { Unit, Usage } from '../capabilities/usage.ts'
import type { AttemptRecord, RequestRecord } from './requests.ts'
import type { Tx, UsageHourTable } from './schema.ts'
import { isPostgres } from './writes.ts'

/** What one request adds to the sums of its hour and of its day. */
export type Used = {
  readonly accountId: string
  readonly keyId: string
  readonly model: string
  readonly capability: Capability
  /** See `countedUnder`. */
  readonly vendor: string
  readonly createdAt: number
  readonly cost: Nano
  readonly vendorCost: Nano
  readonly usage: Usage | null
}

/** What a request adds, from its record and what became of its attempts. */
export function usedBy(
  ended: Pick<Used, 'accountId' | 'cost' | 'usage'> & {
    readonly request: RequestRecord
    readonly attempts: readonly AttemptRecord[]
  },
): Used {
  const { accountId, request, attempts, cost, usage } = ended
  return {
    accountId,
    keyId: request.keyId,
    model: request.model,
    capability: request.capability,
    vendor: countedUnder(attempts),
    createdAt: request.createdAt,
    cost,
    vendorCost: nano(attempts.reduce((sum, { vendorCost }) => sum + vendorCost, 0n)),
    usage,
  }
}

/** The vendor under which a request counts: whose answer was delivered, or the last one called; '' where none was. */
export function countedUnder(
  calls: readonly { readonly vendor: string; readonly delivered: boolean | null }[],
): string {
  return (calls.find(({ delivered }) => delivered) ?? calls.at(-1))?.vendor ?? ''
}

/** Column by unit: the one place that knows both spellings. */
export const unitColumns = {
  input: 'input',
  cachedInput: 'cached_input',
  cacheWrite: 'cache_write',
  cacheWriteHour: 'cache_write_hour',
  imageInput: 'image_input',
  audioInput: 'audio_input',
  output: 'output',
  imageOutput: 'image_output',
  audioOutput: 'audio_output',
  character: 'character',
  videoToken: 'video_token',
  webSearch: 'web_search',
  reasoning: 'reasoning',
} as const satisfies { readonly [U in Exclude<Unit, 'request'> | 'reasoning']: keyof UsageHourTable }

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs
/** What is counted beside requests and money, by column. */
export const summedColumns = ['images', 'video_seconds', ...Object.values(unitColumns)] as const
export type SummedColumn = (typeof summedColumns)[number]

const names: ReadonlySet<string> = new Set(['account_id', 'key_id', 'model', 'capability', 'vendor'])
const identity = ['hour', 'account_id', 'key_id', 'model', 'capability', 'vendor'] as const
const summed = ['requests', 'cost', 'vendor_cost', ...summedColumns] as const
const columns = [...identity, ...summed]

/**
 * Adds requests to the sums of their hours and days, in the transaction that books them, so that a report never differs
 * from the books. PostgreSQL does it in one statement, hours first, as every transaction that changes both does.
 */
export async function addUsage(tx: Tx, used: readonly Used[]): Promise<void> {
  if (used.length === 0) return
  const summedHours = hoursOf(used)
  const [hours, days] = [jsonOf(summedHours), jsonOf(daysOf(summedHours))]
  if (isPostgres(tx)) {
    await tx.executeQuery(CompiledQuery.raw(statements.folded, [hours, days]))
    return
  }
  await tx.executeQuery(CompiledQuery.raw(statements.hours, [hours]))
  await tx.executeQuery(CompiledQuery.raw(statements.days, [days]))
}

/** Changes the money in the sums after a request or its attempts were corrected. */
export async function correctUsage(
  tx: Tx,
  of: Omit<Used, 'cost' | 'vendorCost' | 'usage'>,
  change: Pick<Used, 'cost' | 'vendorCost'>,
): Promise<void> {
  for (const [table, spanMs] of [
    ['usage_hour', hourMs],
    ['usage_day', dayMs],
  ] as const) {
    await tx
      .updateTable(table)
      .set((eb) => ({
        cost: eb('cost', '+', change.cost),
        vendor_cost: eb('vendor_cost', '+', change.vendorCost),
      }))
      .where('account_id', '=', of.accountId)
      .where('hour', '=', startOf(of.createdAt, spanMs))
      .where('key_id', '=', of.keyId)
      .where('model', '=', of.model)
      .where('capability', '=', of.capability)
      .where('vendor', '=', of.vendor)
      .execute()
  }
}

/** Sorted, so that two nodes that add to the same rows cannot deadlock. As text: JSON would round 64-bit integers. */
function jsonOf(sums: Sums): string {
  const rows = [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify(rows.map(([, row]) => columns.map((column) => String(row[column]))))
}

export function startOf(at: number, spanMs: number): number {
  return Math.floor(at / spanMs) * spanMs
}

type Sums = ReadonlyMap<string, UsageHourTable>

function hoursOf(used: readonly Used[]): Sums {
  const sums = new Map<string, UsageHourTable>()
  for (const one of used) {
    const { accountId: account_id, keyId: key_id, model, capability, vendor } = one
    const sum = rowIn(sums, startOf(one.createdAt, hourMs), { account_id, key_id, model, capability, vendor })
    sum.requests++
    sum.cost = nano(sum.cost + one.cost)
    sum.vendor_cost = nano(sum.vendor_cost + one.vendorCost)
    if (one.usage === null) continue
    // Goes through the units that this usage has, mostly two or three, instead of all that exist.
    for (const unit in one.usage) {
      if (isCounted(unit)) sum[unitColumns[unit]] += one.usage[unit] ?? 0
    }
    sum.images += one.usage.images?.count ?? 0
    // The sums have whole numbers only: a started second counts as one.
    sum.video_seconds += Math.ceil(one.usage.video?.seconds ?? 0)
  }
  return sums
}

/** Summed from the hours, which are few even where requests are many. */
function daysOf(hours: Sums): Sums {
  const sums = new Map<string, UsageHourTable>()
  for (const row of hours.values()) {
    const sum = rowIn(sums, startOf(row.hour, dayMs), row)
    sum.requests += row.requests
    sum.cost = nano(sum.cost + row.cost)
    sum.vendor_cost = nano(sum.vendor_cost + row.vendor_cost)
    for (const column of summedColumns) sum[column] += row[column]
  }
  return sums
}

function isCounted(unit: string): unit is keyof typeof unitColumns {
  return Object.hasOwn(unitColumns, unit)
}

type SummedBy = Pick<UsageHourTable, 'account_id' | 'key_id' | 'model' | 'capability' | 'vendor'>

/** The row of sums for this hour or day, which is added if it is the first of its kind. */
function rowIn(
  sums: Map<string, UsageHourTable>,
  hour: number,
  { account_id, key_id, model, capability, vendor }: SummedBy,
): UsageHourTable {
  const id = `${hour}/${account_id}/${key_id}/${capability}/${vendor}/${model}`
  let sum = sums.get(id)
  if (sum === undefined) {
    sum = { ...zeros, hour, account_id, key_id, model, capability, vendor }
    sums.set(id, sum)
  }
  return sum
}

const zeros = {
  ...(Object.fromEntries(summedColumns.map((column) => [column, 0])) as Record<SummedColumn, number>),
  requests: 0,
  cost: nano(0n),
  vendor_cost: nano(0n),
}

function insertInto(table: 'usage_hour' | 'usage_day', engine: 'postgres' | 'sqlite', parameter: string): string {
  const source =
    engine === 'postgres'
      ? `json_array_elements(${parameter}::json) as given(value)`
      : `json_each(${parameter}) as given`
  const number = (at: number) =>
    engine === 'postgres' ? `(given.value ->> ${at})::bigint` : `cast(given.value ->> ${at} as integer)`
  const read = columns.map((column, at) => (names.has(column) ? `given.value ->> ${at}` : number(at)))
  const adding = summed.map((column) => `${column} = ${table}.${column} + excluded.${column}`)
  return (
    `insert into ${table} (${columns.join(', ')}) select ${read.join(', ')} from ${source} where true ` +
    `on conflict (account_id, hour, key_id, model, capability, vendor) do update set ${adding.join(', ')}`
  )
}

const statements = {
  hours: insertInto('usage_hour', 'sqlite', '?'),
  days: insertInto('usage_day', 'sqlite', '?'),
  // PostgreSQL runs a write in WITH that nothing reads from after the main statement, so the hours come first.
  folded: `with days as (${insertInto('usage_day', 'postgres', '$2')}) ` + insertInto('usage_hour', 'postgres', '$1'),
}
