// What a statement may name at once: each is a parameter of it, and SQLite and PostgreSQL both have a bound for those.
const idsPerQuery = 500

/** Any number of ids, in as many parts as it takes to ask for them. */
export function* inPages<T>(ids: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < ids.length; i += idsPerQuery) yield ids.slice(i, i + idsPerQuery)
}
