import { CompiledQuery } from 'kysely'
import { columnKinds, type Kind, type Schema, type Tx } from './schema.ts'
import { foldsWrites } from './together.ts'

type Bound = string | number | bigint | boolean | null
type Row<T extends keyof Schema> = { readonly [C in keyof Schema[T]]: Bound }

/**
 * Inserts any number of rows by one statement with one parameter, an array of arrays as JSON: the text of the statement
 * is always the same, so that it is prepared once, and nothing is bound value by value. Measured on SQLite, it takes a
 * third of the time of an insert with a placeholder for each value. Gives the ids of the rows that were not there yet.
 */
export async function insertNew<T extends BulkTable>(tx: Tx, table: T, rows: readonly Row<T>[]): Promise<Set<string>> {
  const ids = new Set<string>()
  if (rows.length === 0) return ids
  const columns = columnsOf(table)
  const values = JSON.stringify(rows.map((row) => columns.map((column) => writable(row[column as keyof Row<T>]))))
  const text = statement(table, columns, foldsWrites(tx) ? 'postgres' : 'sqlite')
  const { rows: inserted } = await tx.executeQuery<{ new_id: string }>(CompiledQuery.raw(text, [values]))
  for (const { new_id: id } of inserted) ids.add(id)
  return ids
}

type BulkTable = 'txn' | 'entry' | 'request' | 'attempt'

/** By which a row is known. */
const idColumn = { txn: 'id', entry: 'txn_id', request: 'id', attempt: 'id' } as const satisfies Record<
  BulkTable,
  string
>

const statements = new Map<string, string>()

function statement(table: BulkTable, columns: readonly string[], engine: 'postgres' | 'sqlite'): string {
  const name = `${engine}/${table}`
  let text = statements.get(name)
  if (text === undefined) {
    const kinds: Readonly<Record<string, Kind>> = columnKinds[table]
    const source = engine === 'postgres' ? 'json_array_elements($1::json) as given(value)' : 'json_each(?) as given'
    const read = columns.map((column, at) => casts[engine][kinds[column] ?? 'text'](`given.value ->> ${at}`))
    text =
      `insert into ${table} (${columns.join(', ')}) select ${read.join(', ')} from ${source} where true ` +
      `on conflict do nothing returning ${idColumn[table]} as new_id`
    statements.set(name, text)
  }
  return text
}

const plain = (value: string) => value
const casts = {
  postgres: {
    text: plain,
    json: plain,
    money: (value) => `(${value})::bigint`,
    number: (value) => `(${value})::bigint`,
    boolean: (value) => `(${value})::boolean`,
  },
  sqlite: {
    text: plain,
    json: plain,
    money: (value) => `cast(${value} as integer)`,
    number: (value) => `cast(${value} as integer)`,
    boolean: plain,
  },
} as const satisfies Record<string, Record<Kind, (value: string) => string>>

function columnsOf(table: BulkTable): readonly string[] {
  return Object.keys(columnKinds[table])
}

/** JSON has no 64-bit integers: they travel as text and are cast on arrival. */
function writable(value: Bound): string | number | boolean | null {
  return typeof value === 'bigint' ? value.toString() : value
}
