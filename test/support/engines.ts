import { afterEach, beforeAll, describe, expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { checkLedger } from '../../src/store/check.ts'
import { type Engine, openStore, type Store, type StoreOptions } from '../../src/store/open.ts'
import { coldStartMs, sharedPostgres } from './postgres.ts'
import { writeFreshSqlite } from './sqlite.ts'
import { temporaryFolder } from './temporary-folder.ts'

export type OpenOptions = Pick<StoreOptions, 'clock' | 'waitMs'> & {
  /** Opens this database instead of a new one: see `place`. */
  readonly at?: Place
  /** For tests that break the books on purpose. All others must end with a balanced ledger. */
  readonly books?: 'unchecked'
}
export type Open = (options?: OpenOptions) => Promise<Store>
export type Place = { readonly url: string } | { readonly file: string }
/** The address of a new database: empty, or with the current schema. */
export type NewPlace = (content?: 'empty') => Promise<Place>

// These tests are about outcomes, not about speed.
const waitMs = 20_000

/** Runs the same tests on both engines. Every database that a test opens is checked, closed and removed after it. */
export function eachEngine(name: string, define: (open: Open, place: NewPlace, engine: Engine) => void): void {
  describe(`${name} on SQLite`, () => {
    const { open, remember, closeAll } = bookkeeping()
    const place: NewPlace = async (content) => {
      const folder = temporaryFolder('store')
      remember(() => rmSync(folder, { recursive: true, force: true }))
      const file = join(folder, 'turnpike.db')
      if (content !== 'empty') await writeFreshSqlite(file)
      return { file }
    }
    define(open(place), place, 'sqlite')
    afterEach(closeAll)
  })

  describe(`${name} on PostgreSQL`, () => {
    beforeAll(async () => {
      await sharedPostgres()
    }, coldStartMs)
    const { open, remember, closeAll } = bookkeeping()
    const place: NewPlace = async (content) => {
      const server = await sharedPostgres()
      const url = content === 'empty' ? await server.emptyDatabase() : await server.freshDatabase()
      remember(() => server.dropDatabase(url))
      return { url }
    }
    define(open(place), place, 'postgres')
    afterEach(closeAll)
  })
}

function bookkeeping() {
  let stores: { store: Store; checked: boolean }[] = []
  let removals: (() => unknown)[] = []

  /** To be run after the tests' own hooks, which stop what still uses the databases. */
  async function closeAll(): Promise<void> {
    const opened = stores
    const leftovers = removals
    stores = []
    removals = []
    try {
      for (const { store, checked } of opened) if (checked) expect(await checkLedger(store)).toEqual([])
    } finally {
      for (const { store } of opened) await store.close()
      for (const remove of leftovers) await remove()
    }
  }

  return {
    closeAll,
    remember: (removal: () => unknown) => removals.push(removal),
    open:
      (place: NewPlace): Open =>
      async ({ at, books, ...options } = {}) => {
        const store = await openStore({ ...(at ?? (await place())), waitMs, ...options })
        stores.push({ store, checked: books !== 'unchecked' })
        return store
      },
  }
}
