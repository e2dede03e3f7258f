import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { silentLog } from '../../src/base/log.ts'
import { readEnvironment } from '../../src/config/environment.ts'
import { readConfigFile } from '../../src/config/file.ts'
import { openGateway, type Gateway } from '../../src/gateway.ts'
import { checkLedger } from '../../src/store/check.ts'
import { openStore, type Engine, type Store } from '../../src/store/open.ts'
import { noFatal } from './fatal.ts'
import { createSparseReserve } from './journal-room.ts'
import { sharedPostgres } from './postgres.ts'
import { writeFreshSqlite } from './sqlite.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** The options of a start. */
export type Asked = {
  readonly variables?: Readonly<Record<string, string>>
  readonly yaml?: string
  readonly provenSafe?: () => Promise<void>
}

/** A folder and a database on which gateways of this process are started one after another. */
export type Site = {
  readonly engine: Engine
  readonly folder: string
  start(asked?: Asked): Promise<Gateway>
  /** Runs a statement directly on the database. */
  tell(statement: string): Promise<void>
  /** The gateway's connections to PostgreSQL; 0 for SQLite. */
  connections(): Promise<number>
  /** Reads the database directly; creates the tables if there are none. */
  look<T>(work: (store: Store) => Promise<T>): Promise<T>
  checkBooks(): Promise<void>
  remove(): Promise<void>
}

const key = `sk-${'k'.repeat(40)}`

/** POSTs with a key that every start on a site knows. */
export function post(gateway: Gateway, path: string, body: unknown): Promise<Response> {
  return fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    keepalive: false,
  })
}

/** Makes a paid request; returns its status. */
export async function chat(gateway: Gateway): Promise<number> {
  const messages = [{ role: 'user', content: 'Hello!' }]
  const response = await post(gateway, '/v1/chat/completions', { model: 'gpt-4o-mini', messages })
  await response.text()
  return response.status
}

/** With a database that has the tables, which starts would otherwise create each time, or with an empty one. */
export async function openSite(engine: Engine, content: 'tables' | 'empty' = 'tables'): Promise<Site> {
  const folder = temporaryFolder('site')
  createSparseReserve(folder)
  const file = join(folder, 'turnpike.sqlite')
  const url = engine === 'postgres' ? await newDatabase(content) : undefined
  if (engine === 'sqlite' && content === 'tables') await writeFreshSqlite(file)

  async function ask<T>(statement: string): Promise<T[]> {
    if (url === undefined) {
      const database = new Database(file, { create: true })
      database.run(statement)
      database.close()
      return []
    }
    const client = new Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query(statement)
    await client.end()
    return rows as T[]
  }

  const look: Site['look'] = async (work) => {
    const store = await openStore(url === undefined ? { file } : { url })
    try {
      return await work(store)
    } finally {
      await store.close()
    }
  }

  return {
    engine,
    folder,
    start({ variables = {}, yaml = '', provenSafe } = {}) {
      const base = { PORT: '0', ADMIN_PORT: '0', TURNPIKE_DATA: folder, TURNPIKE_SECRET: 's'.repeat(32) }
      const database = url === undefined ? {} : { DATABASE_URL: url }
      return openGateway({
        environment: readEnvironment({ ...base, ...database, TURNPIKE_BOOTSTRAP_KEY: key, ...variables }),
        file: readConfigFile('turnpike.yaml', yaml, {}),
        variables: {},
        log: silentLog,
        fatal: noFatal,
        ...(provenSafe !== undefined && { provenSafe: provenSafe() }),
      })
    },
    async tell(statement) {
      await ask(statement)
    },
    async connections() {
      if (url === undefined) return 0
      const [row] = await ask<{ count: string }>(
        `select count(*) from pg_stat_activity where datname = current_database() and application_name like 'turnpike%'`,
      )
      return Number(row?.count)
    },
    look,
    checkBooks: () => look(async (store) => expect(await checkLedger(store)).toEqual([])),
    async remove() {
      if (url !== undefined) await (await sharedPostgres()).dropDatabase(url)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function newDatabase(content: 'tables' | 'empty'): Promise<string> {
  const server = await sharedPostgres()
  return content === 'empty' ? server.emptyDatabase() : server.freshDatabase()
}
