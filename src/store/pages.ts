// Each id is a parameter of its statement, and both SQLite and PostgreSQL limit the number of parameters.
const idsPerQuery = 500

/** Splits any number of ids into pages that one statement can name. */
export function* inPages<T>(ids: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < ids.length; i += idsPerQuery) yield ids.slice(i, i + idsPerQuery)
}
