import type {
  KyselyPlugin,
  PluginTransformQueryArgs,
  PluginTransformResultArgs,
  QueryResult,
  RootOperationNode,
  UnknownRow,
} from 'kysely'
import { columnKinds, derivedKinds, type JsonText, type ColumnKind } from './schema.ts'

/** The only way into a JSON column. A null is stored as NULL, not as the text `null`. */
export function json<T>(value: T): JsonText<T> {
  return (value === null ? null : JSON.stringify(value)) as JsonText<T>
}

/**
 * Results carry column names without their table, so a name must have the same kind in every table. Text needs no
 * mapping and is left out: `revision.value` may be a number while `setting.value` is a text.
 */
export function kindsByName(tables: Record<string, Record<string, ColumnKind>>): ReadonlyMap<string, ColumnKind> {
  const kinds = new Map<string, ColumnKind>()
  for (const [table, columns] of Object.entries(tables)) {
    for (const [name, kind] of Object.entries(columns)) {
      if (kind === 'text') continue
      const known = kinds.get(name)
      if (known !== undefined && known !== kind) throw new Error(`${table}.${name} is ${kind}, elsewhere ${known}`)
      kinds.set(name, kind)
    }
  }
  return kinds
}

const kinds = kindsByName({ ...columnKinds, derived: derivedKinds })

/**
 * Makes rows of both engines equal. SQLite gives every integer as bigint and booleans as 0 and 1; PostgreSQL gives
 * int8 as bigint, int4 as number and booleans as such; both give JSON columns as text.
 */
export class RowNormalizer implements KyselyPlugin {
  transformQuery(args: PluginTransformQueryArgs): RootOperationNode {
    return args.node
  }

  transformResult(args: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> {
    for (const row of args.result.rows) mapRow(row)
    return Promise.resolve(args.result)
  }
}

function mapRow(row: UnknownRow): void {
  for (const name in row) {
    const value = row[name]
    if (value === null) continue
    // Strings pass at once unless they are JSON: most columns are ids and words.
    const kind = kinds.get(name)
    if (typeof value === 'string' && kind !== 'json') continue
    row[name] = mapValue(name, kind, value)
  }
}

function mapValue(name: string, kind: ColumnKind | undefined, value: unknown): unknown {
  switch (kind) {
    case 'money':
      if (typeof value === 'bigint') return value
      if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
      break
    case 'number': {
      const number = Number(value)
      if (Number.isSafeInteger(number)) return number
      break
    }
    case 'boolean':
      if (typeof value === 'boolean') return value
      if (value === 1n || value === 0n) return value === 1n
      break
    case 'json':
      if (typeof value === 'string') return JSON.parse(value) as unknown
      break
    case 'text':
    case undefined:
      break
  }
  throw new Error(`the store cannot read ${name}: a ${typeof value} where ${kind ?? 'a known column'} was expected`)
}
