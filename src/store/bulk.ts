import { CompiledQuery } from 'kysely'
import { columnKinds, type ColumnKind, type Schema, type Tx } from './schema.ts'
import { isPostgres } from './writes.ts'

type Bound = string | number | bigint | boolean | null
/** A row as the engines take and give it, with JSON as text. */
export type Row<T extends keyof Schema> = { readonly [C in keyof Schema[T]]: Bound }

/** Inserts any number of rows, leaves existing ones as they are, and gives how many were new. */
export async function insertNew<T extends keyof Schema>(tx: Tx, table: T, rows: readonly Row<T>[]): Promise<number> {
  if (rows.length === 0) return 0
  return isPostgres(tx) ? insertAsJson(tx, table, rows) : insertInBlocks(tx, table, rows)
}

/** On PostgreSQL round trips cost the most: one statement with one parameter, an array of arrays as JSON. */
async function insertAsJson<T extends keyof Schema>(tx: Tx, table: T, rows: readonly Row<T>[]): Promise<number> {
  const columns = columnsOf(table)
  const values = JSON.stringify(rows.map((row) => columns.map((column) => writable(row[column]))))
  const text = remembered(`json/${table}`, () => {
    const kinds: Readonly<Record<string, ColumnKind>> = columnKinds[table]
    const read = columns.map((column, at) => jsonReaders[kinds[column] ?? 'text'](`given.value ->> ${at}`))
    return (
      `insert into ${table} (${columns.join(', ')}) ` +
      `select ${read.join(', ')} from json_array_elements($1::json) as given(value) on conflict do nothing`
    )
  })
  return run(tx, text, [values])
}

// SQLite runs in our process, where binding a value to a placeholder is cheaper than reading it out of JSON: with
// blocks of this many rows the whole insertion took half the time, and larger blocks gained nothing more. The sizes are
// few, so that few statements have to be prepared.
const blockSizes = [100, 20, 4, 1] as const

async function insertInBlocks<T extends keyof Schema>(tx: Tx, table: T, rows: readonly Row<T>[]): Promise<number> {
  const columns = columnsOf(table)
  let inserted = 0
  let at = 0
  for (const size of blockSizes) {
    for (; rows.length - at >= size; at += size) {
      const values: Bound[] = []
      for (let i = at; i < at + size; i++) for (const column of columns) values.push(rows[i]?.[column] ?? null)
      inserted += await run(tx, blockText(table, columns, size), values)
    }
  }
  return inserted
}

function blockText(table: keyof Schema, columns: readonly string[], size: number): string {
  return remembered(`${size}/${table}`, () => {
    const row = `(${columns.map(() => '?').join(', ')})`
    const block = Array.from({ length: size }, () => row).join(', ')
    return `insert into ${table} (${columns.join(', ')}) values ${block} on conflict do nothing`
  })
}

async function run(tx: Tx, text: string, values: readonly Bound[]): Promise<number> {
  // The values bypass `raw`, which would freeze them: for a thousand values that takes longer than inserting them.
  const { numAffectedRows } = await tx.executeQuery({ ...CompiledQuery.raw(text), parameters: values })
  return Number(numAffectedRows)
}

const texts = new Map<string, string>()

function remembered(name: string, make: () => string): string {
  let text = texts.get(name)
  if (text === undefined) {
    text = make()
    texts.set(name, text)
  }
  return text
}

const plain = (value: string) => value
const jsonReaders: Record<ColumnKind, (value: string) => string> = {
  text: plain,
  json: plain,
  money: (value) => `(${value})::bigint`,
  number: (value) => `(${value})::bigint`,
  boolean: (value) => `(${value})::boolean`,
}

function columnsOf<T extends keyof Schema>(table: T): readonly (keyof Row<T> & string)[] {
  return Object.keys(columnKinds[table]) as (keyof Row<T> & string)[]
}

/** JSON has no 64-bit integers: they travel as text and are cast on arrival. */
function writable(value: Bound): string | number | boolean | null {
  return typeof value === 'bigint' ? value.toString() : value
}
