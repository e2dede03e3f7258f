import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyProgram } from './copied-program.ts'

/** The next version of the gateway: this one with further migrations. */
export type NewerRelease = {
  readonly program: string
  /** The names under which its migrations are on record. */
  readonly migrations: readonly string[]
}

/** The tables that a request writes to or reads from. */
const tables = ['account', 'api_key', 'hold', 'lease', 'txn', 'entry', 'request', 'attempt', 'usage_hour', 'usage_day']
const migrations = [...tables, 'later'].map((table) => `9999-${table}`)

/**
 * The migrations only add, as they must while two versions run: a column to each of these tables, one more column with
 * a default, an index, and a table.
 */
const source = `import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

export function later(): Record<string, Migration> {
  const tables: Record<string, Migration> = {}
  for (const table of ${JSON.stringify(tables)}) {
    tables['9999-' + table] = {
      async up(db: Kysely<unknown>) {
        await db.schema.alterTable(table).addColumn('later', 'text').execute()
        if (table !== 'request') return
        await db.schema.alterTable(table).addColumn('region', 'text', (c) => c.notNull().defaultTo('here')).execute()
        await db.schema.createIndex('request_region').on(table).columns(['region', 'created_at']).execute()
      },
    }
  }
  tables['9999-later'] = {
    async up(db: Kysely<unknown>) {
      await db.schema.createTable('later').addColumn('id', 'text', (c) => c.primaryKey()).execute()
    },
  }
  return tables
}
`

/** Copies the gateway, so that two versions can run side by side, and adds to the copy what a newer one would have. */
export function makeNewerRelease(): NewerRelease {
  const folder = copyProgram('newer')
  writeFileSync(join(folder, 'src/store/migrations/later.ts'), source)
  const list = join(folder, 'src/store/migrate.ts')
  writeFileSync(list, withLater(readFileSync(list, 'utf8')))
  return {
    program: join(folder, 'bin/turnpike'),
    migrations,
  }
}

const lastMigration = /('\d{4}-[\w-]+': \w+\([^)]*\),)(\s*\})/

function withLater(list: string): string {
  if (!lastMigration.test(list)) throw new Error('the list of migrations is written in another way')
  return `import { later } from './migrations/later.ts'\n${list.replace(lastMigration, '$1 ...later(),$2')}`
}
