import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Kysely, sql } from 'kysely'
import { Client } from 'pg'
import { eachEngine } from '../../test/support/engines.ts'
import { olderDatabase } from '../../test/support/older-database.ts'
import { sharedPostgres } from '../../test/support/postgres.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { isAway, isUnavailable } from './faults.ts'
import { openStore } from './open.ts'
import type { Queries } from './schema.ts'
import { readSetting, writeSetting } from './settings.ts'
import { openSqlite } from './sqlite.ts'

eachEngine('a database', (open, place, engine) => {
  test('opening migrates an empty database, and opening it again keeps its data', async () => {
    const at = await place('empty')
    const first = await open({ at })
    await writeSetting(first.db, 'kept', 'yes')
    const second = await open({ at })
    expect(await readSetting(second.db, 'kept')).toBe('yes')
  })

  test('several nodes that open an empty database at once run each migration once', async () => {
    const at = await place('empty')
    const stores = await Promise.all(Array.from({ length: 5 }, () => open({ at })))
    const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(stores[0]?.db ?? fail())
    const names = rows.map((row) => row.name)
    expect(names).toContain('0001-ledger')
    expect(names).toEqual([...new Set(names)])
  })

  test('a database that a newer version migrated further is opened as it is', async () => {
    const at = await place('empty')
    const store = await open({ at })
    await sql`insert into kysely_migration (name, timestamp) values ('9999-later', '2099-01-01')`.execute(store.db)
    const older = await open({ at })
    await older.ping()
  })

  test('a query beside an open transaction neither sees its writes nor joins it', async () => {
    const store = await open()
    const entered = Promise.withResolvers<void>()
    const resume = Promise.withResolvers<void>()
    const failing = store.transaction(async (tx) => {
      await writeSetting(tx, 'inside', 'lost')
      entered.resolve()
      await resume.promise
      throw new Error('rolled back')
    })
    await entered.promise
    // On SQLite these wait for the one connection; on PostgreSQL they take another.
    const write = writeSetting(store.db, 'outside', 'kept')
    const read = readSetting(store.db, 'inside')
    resume.resolve()
    expect(failing).rejects.toThrow('rolled back')
    await write
    expect(await read).toBeUndefined()
    expect(await readSetting(store.db, 'outside')).toBe('kept')
    expect(await readSetting(store.db, 'inside')).toBeUndefined()
  })

  test.if(engine === 'postgres')('a snapshot refuses to write', async () => {
    const store = await open()
    expect(store.snapshot((tx) => writeSetting(tx, 'a', 'b'))).rejects.toThrow('read-only')
    expect(await readSetting(store.db, 'a')).toBeUndefined()
  })

  test('a snapshot reads one state, whatever another connection writes meanwhile', async () => {
    const at = await place()
    const [store, other] = [await open({ at }), await open({ at })]
    await writeSetting(store.db, 'a', 'before')
    const seen = await store.snapshot(async (tx) => {
      const first = await readSetting(tx, 'a')
      await writeSetting(other.db, 'a', 'after')
      return [first, await readSetting(tx, 'a')]
    })
    expect(seen).toEqual(['before', 'before'])
    expect(await readSetting(store.db, 'a')).toBe('after')
  })

  test('the journal is append-only', async () => {
    const store = await open({ books: 'unchecked' })
    const { db } = store
    await sql`insert into txn (id, kind, basis, created_at) values ('t', 'credit', 'manual', 1)`.execute(db)
    await sql`insert into entry (txn_id, account, amount) values ('t', 'promo', 5)`.execute(db)
    for (const table of ['txn', 'entry'] as const) {
      const column = table === 'txn' ? 'id' : 'txn_id'
      const refused = [
        sql`update ${sql.table(table)} set ${sql.ref(column)} = 'x'`,
        sql`delete from ${sql.table(table)}`,
        engine === 'sqlite'
          ? sql`insert or replace into ${sql.table(table)} select * from ${sql.table(table)}`
          : sql`truncate ${sql.table(table)} cascade`,
      ]
      for (const statement of refused) expect(statement.execute(db)).rejects.toThrow('append-only')
    }
    expect(await db.selectFrom('entry').select('amount').executeTakeFirst()).toEqual({ amount: 5n as never })
  })

  test('the journal refuses unknown kinds and bases, and entries without a txn', async () => {
    const { db } = await open({ books: 'unchecked' })
    for (const [kind, basis] of [
      ['gift', 'manual'],
      ['credit', 'guess'],
    ]) {
      const txn = sql`insert into txn (id, kind, basis, created_at) values ('t', ${kind}, ${basis}, 1)`
      expect(txn.execute(db)).rejects.toThrow(/check/i)
    }
    expect(sql`insert into entry (txn_id, account, amount) values ('t', 'promo', 5)`.execute(db)).rejects.toThrow(
      /foreign key/i,
    )
  })
})

const modeOf = (file: string): number => statSync(file).mode & 0o777

test("only the gateway's user can read a new database, and an existing one keeps its mode", async () => {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-mode-'))
  const file = join(folder, 'turnpike.db')
  try {
    const store = await openStore({ file })
    await writeSetting(store.db, 'kept', 'yes')
    expect([file, `${file}-wal`, `${file}-shm`].map(modeOf)).toEqual([0o600, 0o600, 0o600])
    await store.close()
    chmodSync(file, 0o640)
    const again = await openStore({ file })
    expect(await readSetting(again.db, 'kept')).toBe('yes')
    expect(modeOf(file)).toBe(0o640)
    await again.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test("only the gateway's user can read a new database that a link leads to", async () => {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-link-'))
  const [file, target] = [join(folder, 'turnpike.db'), join(folder, 'elsewhere.db')]
  try {
    symlinkSync(target, file)
    const store = await openStore({ file })
    await store.close()
    expect(modeOf(target)).toBe(0o600)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a full disk fails a transaction as SQLITE_FULL, and nothing of it is kept', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-full-'))
  const db = new Kysely({ dialect: openSqlite(join(folder, 'turnpike.db')) })
  try {
    await sql`create table kept (bytes blob)`.execute(db)
    // No more pages than exist already: for SQLite the same as a full disk.
    await sql`pragma max_page_count = 1`.execute(db)
    const write = (tx: typeof db, bytes: number) => sql`insert into kept values (zeroblob(${bytes}))`.execute(tx)
    const thrown = await thrownBy(
      db.transaction().execute(async (tx) => {
        await write(tx, 1)
        await write(tx, 1_000_000)
      }),
    )
    expect(thrown).toMatchObject({ code: 'SQLITE_FULL' })
    expect(isUnavailable(thrown)).toBe(true)
    expect((await sql`select * from kept`.execute(db)).rows).toEqual([])
    await db.transaction().execute((tx) => write(tx, 1))
  } finally {
    await db.destroy()
    rmSync(folder, { recursive: true, force: true })
  }
})

describe('beside a running gateway', () => {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-beside-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('another process writes to the same SQLite file without either being told that it is busy', async () => {
    const file = join(folder, 'turnpike.db')
    const store = await openStore({ file })
    const rounds = 200
    const script = join(import.meta.dir, '../../test/support/write-settings.ts')
    const other = Bun.spawn([process.execPath, script, file, String(rounds)], { stdout: 'pipe', stderr: 'pipe' })
    for (let round = 0; round < rounds; round++) {
      // Reads before it writes: the pattern that cannot wait for a lock unless it took it at the start.
      await store.transaction(async (tx) => {
        const before = Number((await readSetting(tx, 'counter')) ?? '0')
        await writeSetting(tx, 'counter', String(before + 1))
      })
    }
    expect(await new Response(other.stderr).text()).toBe('')
    expect(await other.exited).toBe(0)
    expect(await readSetting(store.db, 'counter')).toBe(String(2 * rounds))
    await store.close()
  })

  test('a migration waits for another writer of the file, however long that takes', async () => {
    const file = join(folder, 'older.db')
    await (await olderDatabase({ file }, '0006-delivered')).destroy()
    const other = new Database(file)
    other.run('begin immediate')
    const opening = openStore({ file })
    // Longer than a statement waits for another writer.
    const isEarly = await Promise.race([opening.then(() => true), Bun.sleep(6_000).then(() => false)])
    other.run('commit')
    other.close()
    const store = await opening
    expect(isEarly).toBe(false)
    await sql`select delivered from attempt`.execute(store.db)
    await store.close()
  }, 120_000)

  test('the file of writes that a long read kept from the database is cut back after it', async () => {
    const file = join(folder, 'wal.db')
    const store = await openStore({ file })
    const walMb = () => statSync(`${file}-wal`).size / 2 ** 20
    const backup = new Database(file, { readonly: true })
    backup.run('begin')
    backup.query('select count(*) from setting').get()
    // Larger than what is kept, which takes the disk some hundred milliseconds.
    await writeSetting(store.db, 'large', 'x'.repeat(34 * 2 ** 20))
    expect(walMb()).toBeGreaterThan(34)
    backup.close()
    for (const value of ['first', 'second']) await writeSetting(store.db, 'small', value)
    expect(walMb()).toBeLessThan(33)
    await store.close()
  })
})

describe('a PostgreSQL that does not answer', () => {
  const lateMs = 10_000

  test('an unreachable server counts as unavailable, and a wrong query does not', async () => {
    const unreachable = await openStore({ url: 'postgres://turnpike@127.0.0.1:1/none' }).catch(
      (error: unknown) => error,
    )
    expect(isUnavailable(unreachable)).toBe(true)

    const server = await sharedPostgres()
    const store = await openStore({ url: await server.freshDatabase() })
    const wrong = await sql`select nothing`.execute(store.db).catch((error: unknown) => error)
    expect(isUnavailable(wrong)).toBe(false)
    await store.close()
  })

  test('an unreachable server counts as away, and a missing certificate file does not', async () => {
    const nobody = 'postgres://turnpike@127.0.0.1:1/none'
    for (const url of [nobody, 'postgres:///none?host=/nowhere']) {
      expect(isAway(await thrownBy(openStore({ url })))).toBe(true)
    }
    const unfounded = await thrownBy(openStore({ url: `${nobody}?sslrootcert=/nowhere/ca.pem` }))
    expect(unfounded).toMatchObject({ message: expect.stringContaining('/nowhere/ca.pem') })
    expect(isAway(unfounded)).toBe(false)
  })

  // A standby, or a server with a full disk, only reads until that changes; a session may keep the state it began with.
  test('a read-only server counts as unavailable until it accepts writes again', async () => {
    const server = await sharedPostgres()
    const url = await server.freshDatabase()
    const admin = new Client({ connectionString: server.url() })
    await admin.connect()
    const onlyReads = (isSo: boolean) =>
      admin.query(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = ${isSo}`)
    await onlyReads(true)
    const store = await openStore({ url })
    const tries = [() => store.ping(), () => store.transaction((tx) => tx.deleteFrom('setting').execute())]
    for (const attempt of tries) expect(isUnavailable(await thrownBy(attempt()))).toBe(true)
    await onlyReads(false)
    for (const attempt of tries) await attempt()
    await store.close()
    await admin.end()
  })

  // Each wait ends after a second or two; otherwise it would last until the server wakes, which it does not by itself.
  test('queries to a frozen server fail instead of waiting, and succeed once it runs again', async () => {
    const server = await sharedPostgres()
    const store = await openStore({ url: await server.freshDatabase() })
    await store.ping()
    const [backend] = (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(store.db.withoutPlugins()))
      .rows
    const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
      for (const pid of [server.pid, backend?.pid ?? 0]) process.kill(pid, name)
    }
    signal('SIGSTOP')
    try {
      const ping = () =>
        Promise.race([
          store.ping().then(
            () => 'answered',
            (error: unknown) => isUnavailable(error),
          ),
          Bun.sleep(lateMs).then(() => 'still waiting'),
        ])
      expect(await Promise.all([ping(), ping(), ping()])).toEqual([true, true, true])
    } finally {
      signal('SIGCONT')
    }
    while (
      await store.ping().then(
        () => false,
        () => true,
      )
    )
      continue
    await store.close()
  })
})

function fail(): never {
  throw new Error('nothing was opened')
}

async function limitsOf(db: Queries): Promise<Record<string, string>> {
  const { rows } = await sql<{ name: string; setting: string }>`select name, setting from pg_settings
    where name in ('statement_timeout', 'idle_in_transaction_session_timeout')`.execute(db.withoutPlugins())
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
}

test('a connection for requests gives up far sooner than one for reports, and neither keeps a transaction open', async () => {
  const server = await sharedPostgres()
  const store = await openStore({ url: await server.freshDatabase() })
  const idle = { idle_in_transaction_session_timeout: '5000' }
  expect(await limitsOf(store.db)).toEqual({ ...idle, statement_timeout: '1000' })
  expect(await store.snapshot(limitsOf)).toEqual({ ...idle, statement_timeout: '60000' })
  expect(await store.snapshot(limitsOf, 100)).toEqual({ ...idle, statement_timeout: '100' })
  await store.close()
})

test('a database with LATIN1 encoding is refused', async () => {
  const server = await sharedPostgres()
  const url = await server.emptyDatabase()
  const admin = new Client({ connectionString: url })
  await admin.connect()
  await admin.query(`create database narrow encoding 'LATIN1' template template0 locale 'C'`)
  try {
    const thrown = await thrownBy(openStore({ url: server.url('narrow') }))
    expect(thrown).toMatchObject({ message: expect.stringMatching(/LATIN1.*UTF8/) })
    expect(isUnavailable(thrown)).toBe(false)
  } finally {
    await admin.query('drop database narrow with (force)')
    await admin.end()
    await server.dropDatabase(url)
  }
})

describe('a PostgreSQL whose transactions are serializable by default', () => {
  test('a transaction changes a row that another one has changed since it began', async () => {
    const store = await openStore({ url: await serializable() })
    await writeSetting(store.db, 'name', 'first')
    await store.transaction(async (tx) => {
      expect(await readSetting(tx, 'name')).toBe('first')
      await writeSetting(store.db, 'name', 'second')
      await writeSetting(tx, 'name', 'third')
    })
    expect(await readSetting(store.db, 'name')).toBe('third')
    await store.close()
  })

  test('a statement outside a transaction changes a row that one has changed since it began', async () => {
    const store = await openStore({ url: await serializable() })
    await writeSetting(store.db, 'name', 'first')
    let beside: Promise<void> | undefined
    await store.transaction(async (tx) => {
      await writeSetting(tx, 'name', 'second')
      beside = writeSetting(store.db, 'name', 'third')
      await sql`select pg_sleep(0.1)`.execute(tx)
    })
    await beside
    expect(await readSetting(store.db, 'name')).toBe('third')
    await store.close()
  })

  test('a statement that it refuses because of another transaction counts as unavailable', async () => {
    const store = await openStore({ url: await serializable() })
    await writeSetting(store.db, 'name', 'first')
    const serializing = store.db.transaction().setIsolationLevel('serializable')
    const refused = serializing.execute(async (tx) => {
      await readSetting(tx, 'name')
      await writeSetting(store.db, 'name', 'second')
      await writeSetting(tx, 'name', 'third')
    })
    const thrown = await thrownBy(refused)
    expect(thrown).toMatchObject({ code: '40001' })
    expect(isUnavailable(thrown)).toBe(true)
    await store.close()
  })
})

async function serializable(): Promise<string> {
  const server = await sharedPostgres()
  const url = await server.freshDatabase()
  const admin = new Client({ connectionString: server.url() })
  await admin.connect()
  await admin.query(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = serializable`)
  await admin.end()
  return url
}
