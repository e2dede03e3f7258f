import { isObject } from '../../base/json.ts'
import { parseMoment } from '../../base/moment.ts'
import { nano, picoPerUnit, toNano, type Decimal, type Nano } from '../../base/money.ts'
import { sumOf, units, type Counts } from '../../capabilities/usage.ts'

/** What a vendor says it charges for one call. */
export type BillLine = {
  /** The id of our attempt, which every call carries; null where the vendor does not keep it. */
  readonly ref: string | null
  readonly cost: Nano
  readonly model?: string
  /** What the vendor counted, where the line says so. */
  readonly units?: Counts
  /** Unix milliseconds. */
  readonly at?: number
}

class BillError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BillError'
  }
}

/** Reads a bill in the simulators' own form: `{data: [{ref, model, status, units, cost}]}`. */
export function readBill(text: string): BillLine[] {
  const body = parse(text)
  const lines = isObject(body) ? body['data'] : undefined
  if (!Array.isArray(lines)) throw new BillError('the bill is not a JSON object with a list "data"')
  return lines.map((line: unknown, index) => {
    const where = `line ${index + 1} of the bill`
    if (!isObject(line)) throw new BillError(`${where} is not an object`)
    const { ref, cost, model, units: counted } = line
    return {
      ref: typeof ref === 'string' ? ref : null,
      cost: readCost(typeof cost === 'string' ? cost : '', where),
      ...(typeof model === 'string' && { model }),
      ...(isObject(counted) && { units: readUnits(counted) }),
    }
  })
}

/**
 * Reads a vendor's export as CSV with a header: `ref,cost[,model][,input][,cachedInput][,output][,time]`, in any order.
 * Every other unit may have a column too; unknown columns are ignored. `cost` is in decimal dollars, and a column
 * `currency` may only say USD; units are counted as we count them (cached input is not inside `input`); `time` is ISO
 * 8601, and allows a line to be judged while gateways are busy.
 */
export function readExport(text: string): BillLine[] {
  const [names, ...rows] = readCsv(text)
  if (names === undefined) throw new BillError('the export is empty')
  const at = (name: string) => names.findIndex((given) => given.trim() === name)
  const refAt = at('ref')
  const costAt = at('cost')
  if (refAt === -1 || costAt === -1)
    throw new BillError('the first line of the export must name the columns ref and cost')
  const unitColumns = units.map((unit) => [unit, at(unit)] as const).filter(([, index]) => index !== -1)
  return rows.map((row, index) => {
    const where = `line ${index + 2} of the export`
    const cell = (column: number) => (column === -1 ? undefined : row[column]?.trim() || undefined)
    const counted = Object.fromEntries(
      unitColumns.map(([unit, column]) => [unit, readCount(cell(column), unit, where)]),
    )
    const currency = cell(at('currency')) ?? dollars
    if (currency.toUpperCase() !== dollars) throw new BillError(`${where}: a cost in ${currency}, and not in dollars`)
    const model = cell(at('model'))
    const time = cell(at('time'))
    const moment = time === undefined ? undefined : parseMoment(time)
    if (time !== undefined && moment === undefined)
      throw new BillError(`${where}: "${time}" is not a time with a time zone`)
    return {
      ref: cell(refAt) ?? null,
      cost: readCost(cell(costAt) ?? '', where),
      ...(model !== undefined && { model }),
      ...(unitColumns.some(([, column]) => cell(column) !== undefined) && { units: readUnits(counted) }),
      ...(moment !== undefined && { at: moment }),
    }
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

const dollars = 'USD'
// Programs write small numbers with an exponent, and sums of them with more digits than the amounts had.
const costPattern = /^(\d{1,18})(?:\.(\d{1,40}))?(?:e([+-]?\d{1,2}))?$/i

function readCost(text: string, where: string): Nano {
  const [, whole, fraction = '', exponent = '0'] = costPattern.exec(text) ?? []
  if (whole === undefined) throw new BillError(`${where}: "${text}" is not a cost in dollars`)
  // Digits beyond the nano are only the vendor's own rounding: the cost is rounded to the nano.
  return toNano(picoPerUnit(shifted(BigInt(whole + fraction), fraction.length - Number(exponent)), 1n))
}

function shifted(digits: bigint, scale: number): Decimal {
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 }
}

function readCount(text: string | undefined, unit: string, where: string): number {
  const count = Number(text ?? '')
  if (Number.isSafeInteger(count) && count >= 0) return count
  throw new BillError(`${where}: "${text}" is not a count of ${unit}`)
}

function readUnits(counted: Readonly<Record<string, unknown>>): Counts {
  const found: Partial<Record<(typeof units)[number], number>> = {}
  for (const unit of units) {
    const count = counted[unit]
    if (typeof count === 'number' && Number.isSafeInteger(count) && count > 0) found[unit] = count
  }
  return found
}

/** A field may be in double quotes, within which a doubled quote means one quote and line breaks are allowed. */
function readCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y
  // Spreadsheets put a byte order mark in front.
  const clean = text.replace(/^\uFEFF/, '')
  while (field.lastIndex < clean.length) {
    const start = field.lastIndex
    const match = field.exec(clean)
    if (match === null) throw new BillError(`the export is not valid CSV at character ${start + 1}`)
    row.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '')
    if (match[3] === ',') continue
    if (row.some((cell) => cell !== '')) rows.push(row)
    row = []
  }
  if (row.length > 0) rows.push(row)
  return rows
}

/**
 * One line for each attempt, with the costs and units of all lines that name it: one may be for input and another for
 * output. A vendor that bills a call twice is owed both amounts, and the repetition is reported as a breach. A line
 * that costs nothing is no repetition: a video request that its vendor surely never got is sent again under the same
 * reference.
 */
export function byRef(lines: readonly BillLine[]): {
  lines: Map<string, BillLine>
  nameless: BillLine[]
  repeated: Map<string, number>
} {
  const found = new Map<string, BillLine>()
  const nameless: BillLine[] = []
  const repeated = new Map<string, number>()
  for (const line of lines) {
    if (line.ref === null) {
      // A call that cost nothing, such as a refused one, needs no explanation.
      if (line.cost !== 0n) nameless.push(line)
      continue
    }
    const before = found.get(line.ref)
    const isBilledAgain = before !== undefined && before.cost !== 0n && line.cost !== 0n
    if (isBilledAgain) repeated.set(line.ref, (repeated.get(line.ref) ?? 1) + 1)
    found.set(line.ref, before === undefined ? line : join(before, line))
  }
  return { lines: found, nameless, repeated }
}

function join(before: BillLine, line: BillLine): BillLine {
  const counted = [before.units, line.units].filter((some) => some !== undefined)
  return {
    ...before,
    ...line,
    cost: nano(before.cost + line.cost),
    ...(counted.length > 0 && { units: sumOf(counted) }),
  }
}
