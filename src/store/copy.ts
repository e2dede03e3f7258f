import { sql } from 'kysely'
import { insertNew, type Row } from './bulk.ts'
import type { Store } from './open.ts'
import { columnKinds, type Schema, type Tx } from './schema.ts'

type Table = keyof Schema

/** How many rows of each table were copied. */
export type Copied = Readonly<Record<Table, number>>

/** The tables in the order of the schema, in which every row comes after those that it refers to. */
const tables = Object.keys(columnKinds) as Table[]

/**
 * Copies every row into a database that no gateway has used yet, all or nothing. Nothing can be written to the source
 * meanwhile. The leases and the turn of the node are copied too, so its journal goes on in the new database.
 */
export async function copyStore(from: Store, to: Store): Promise<Copied> {
  return from.transaction((source) =>
    to.transaction(async (target) => {
      const used = await target.selectFrom('account').select('id').limit(1).execute()
      if (used.length > 0) throw new Error('the database already has accounts')
      // The migrations begin the chain of postings, which is copied with its end.
      await target.deleteFrom('chain').execute()
      const copied: [Table, number][] = []
      for (const table of tables) copied.push(await copyTable(source, target, table))
      return Object.fromEntries(copied) as Copied
    }),
  )
}

const batchRowsMax = 1_000
// The answers kept for repeated requests can be a megabyte each.
const batchCharactersMax = 4_000_000

async function copyTable<T extends Table>(source: Tx, target: Tx, table: T): Promise<[T, number]> {
  let read = 0
  let written = 0
  let characters = 0
  let batch: Row<T>[] = []
  const write = async () => {
    written += await insertNew(target, table, batch)
    batch = []
    characters = 0
  }
  for await (const row of source.withoutPlugins().selectFrom<Table>(table).selectAll().stream()) {
    read++
    batch.push(row as Row<T>)
    for (const value of Object.values(row)) if (typeof value === 'string') characters += value.length
    if (batch.length === batchRowsMax || characters >= batchCharactersMax) await write()
  }
  await write()
  if (written !== read) throw new Error(`the database already has ${read - written} of the rows of "${table}"`)
  return [table, read]
}

/** A number that changes whenever another connection has written to this SQLite file. */
export async function versionOf({ db }: Store): Promise<unknown> {
  const { rows } = await sql<{ data_version: unknown }>`select data_version from pragma_data_version`.execute(
    db.withoutPlugins(),
  )
  return rows[0]?.data_version
}
