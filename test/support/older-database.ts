import { Kysely } from 'kysely'
import { Migrator } from 'kysely/migration'
import { migrations } from '../../src/store/migrate.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import type { Place } from './engines.ts'

type Tables = Record<string, Record<string, unknown>>

/** Makes an empty database into one of the version before this migration, and opens it as that version would. */
export async function olderDatabase(at: Place, before: string): Promise<Kysely<Tables>> {
  const isFile = 'file' in at
  const db = new Kysely<Tables>({ dialect: isFile ? openSqlite(at.file) : openPostgres(at.url, 'migration') })
  const all = Object.entries(migrations(isFile ? 'sqlite' : 'postgres'))
  const older = Object.fromEntries(all.filter(([name]) => name < before))
  if (Object.keys(older).length === all.length) throw new Error(`there is no migration ${before}`)
  const { error } = await new Migrator({
    db,
    provider: { getMigrations: () => Promise.resolve(older) },
  }).migrateToLatest()
  if (error !== undefined) throw error
  return db
}
