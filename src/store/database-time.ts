import { CompiledQuery, type DatabaseConnection, sql } from 'kysely'
import { type Clock, systemClock, systemTimers, type Timers } from '../base/clock.ts'
import type { Queries } from './schema.ts'

// Far shorter than a node's claims last, and two clocks drift apart by next to nothing in this time.
const everyMs = 5_000

export type DatabaseTime = {
  /** Unix milliseconds. */
  now(): number
  /**
   * Asks for the time on a new connection before it is used for anything else, because another server with another
   * clock may have taken over.
   */
  askOn(connection: DatabaseConnection): Promise<void>
  close(): void
}

/**
 * The time of day on PostgreSQL's machine, so that nodes that share a database go by one clock, whatever their own say.
 * The database is asked from time to time; in between, the monotonic clock carries the time on.
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
    // The server read its clock between our question and its answer, which bounds the offset to an interval. The offset
    // moves only as far as into that interval, so that clocks that agree are never moved, however long the answer took.
    ahead = Math.max(there - clock.monotonic(), Math.min(there - askedAt, ahead))
  }

  function askLater(): void {
    if (!isClosed) callOff = timers.after(everyMs, askAgain)
  }

  /** Ignores a failure, because an unreachable database is reported elsewhere. */
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
