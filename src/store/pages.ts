import { type SqlBool, sql } from 'kysely'

/** The last row of a page of a list that shows the newest rows first. */
export type PageEnd = { readonly createdAt: number; readonly id: string }

/** Only rows that come after that one: those created before it, and of one moment those with a smaller id. */
export function isBehind({ createdAt, id }: PageEnd) {
  return sql<SqlBool>`(created_at, id) < (${createdAt}, ${id})`
}

// Each id is a parameter of its statement, and both SQLite and PostgreSQL limit the number of parameters.
const idsPerQuery = 500

/** Splits any number of ids into pages that one statement can name. */
export function* inPages<T>(ids: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < ids.length; i += idsPerQuery) yield ids.slice(i, i + idsPerQuery)
}
