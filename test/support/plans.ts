import { Database } from 'bun:sqlite'
import type { CompiledQuery, KyselyPlugin } from 'kysely'
import type { Store } from '../../src/store/open.ts'

/** How SQLite would run each query that `work` makes on a store in this file. PostgreSQL's plans depend on its rows. */
export async function plansOf(
  file: string,
  store: Store,
  work: (watched: Store) => Promise<unknown>,
): Promise<string[]> {
  const asked: CompiledQuery[] = []
  const watch: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      asked.push(store.db.getExecutor().compileQuery(node, queryId))
      return node
    },
    transformResult: ({ result }) => Promise.resolve(result),
  }
  await work({
    ...store,
    db: store.db.withPlugin(watch),
    transaction: (inside) => store.transaction((tx) => inside(tx.withPlugin(watch))),
  })
  using database = new Database(file, { readonly: true, strict: true })
  return asked.map(({ sql, parameters }) => {
    const steps = database.query<{ detail: string }, never[]>(`explain query plan ${sql}`)
    return steps
      .all(...(parameters as never[]))
      .map(({ detail }) => detail)
      .join('\n')
  })
}
