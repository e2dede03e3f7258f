import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { columnKinds } from '../../src/store/schema.ts'
import type { TestGateway } from './gateway.ts'

/** Everything that a thief of the data would have, as one text: every file, every row of every table, and all logs. */
export async function dumpAll(gateway: TestGateway): Promise<string> {
  const found: string[] = [...gateway.logged]
  for (const entry of readdirSync(gateway.folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) found.push(readFileSync(join(entry.parentPath, entry.name), 'latin1'))
  }
  for (const table of Object.keys(columnKinds)) {
    const { rows } = await sql`select * from ${sql.table(table)}`.execute(gateway.store.db.withoutPlugins())
    found.push(JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)))
  }
  return found.join('\n')
}
