import { CompiledQuery, type DatabaseConnection, sql } from 'kysely'
import { type Clock, systemClock, systemTimers, type Timers } from '../base/clock.ts'
import type { Queries } from './schema.ts'

// Far less than what a node has claimed is its own for, and in which two clocks go apart by next to nothing.
const everyMs = 5_000

export type DatabaseTime = {
  /** Unix milliseconds. */
  now(): number
  /** Asks on a new connection, before it is used for anything else: another server may have taken over, with another clock. */
  askOn(connection: DatabaseConnection): Promise<void>
  close(): void
}

/**
 * The time of day that PostgreSQL's machine has: nodes that share a database go by one clock, whatever their own say. It is
 * asked from time to time, and carried on in between by the time that never jumps.
 */
export async function followDatabaseTime(
  db: Queries,
  clock: Clock = systemClock,
  timers: Timers = systemTimers,
): Promise<DatabaseTime> {
  let ahead = clock.now() - clock.monotonic()
  let isClosed = false
  let callOff: (() => void) | undefined

  async function ask(read: () => Promise<number>): Promise<void> {
    const askedAt = clock.monotonic()
    const there = await read()
    // However long the answer took: as far as it surely is, so that clocks that agree are never moved.
    ahead = Math.max(there - clock.monotonic(), Math.min(there - askedAt, ahead))
  }

  function askLater(): void {
    if (!isClosed) callOff = timers.after(everyMs, askAgain)
  }

  /** One that is away is complained of elsewhere. */
  function askAgain(): void {
    void ask(() => databaseTime(db))
      .catch(() => {})
      .finally(askLater)
  }

  await ask(() => databaseTime(db))
  askLater()
  return {
    now: () => Math.round(clock.monotonic() + ahead),
    askOn: (connection) => ask(() => timeOn(connection)).catch(() => {}),
    close() {
      isClosed = true
      callOff?.()
    },
  }
}

const question = 'select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as seen_at'

async function databaseTime(db: Queries): Promise<number> {
  const { rows } = await sql.raw<{ seen_at: number }>(question).execute(db)
  return rows[0]?.seen_at ?? Number.NaN
}

async function timeOn(connection: DatabaseConnection): Promise<number> {
  const { rows } = await connection.executeQuery<{ seen_at: bigint }>(CompiledQuery.raw(question))
  return Number(rows[0]?.seen_at)
}
