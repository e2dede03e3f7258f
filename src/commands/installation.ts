import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, sql } from 'kysely'
import { databaseFile, readEnvironment, type Environment } from '../config/environment.ts'
import { installationSecret } from '../config/installation-secret.ts'
import { makeSecretKeys, type SecretKeys } from '../keys/secret-keys.ts'
import { planMarket, type Plan } from '../market.ts'
import { anyAccount } from '../store/accounts.ts'
import { isUnavailable } from '../store/faults.ts'
import { openStore, type Store } from '../store/open.ts'
import type { Mode } from '../store/schema.ts'
import { loadSettings } from './settings.ts'

/** What commands that work on the database have in common: where it is, and which mode they speak of. */
export type InstallationOptions = { readonly config?: string; readonly mode?: Mode }

export type Installation = {
  readonly environment: Environment
  readonly store: Store
  readonly mode: Mode
  /** What a start would offer now. Read when asked: a broken file must not stop a command that needs none of it. */
  readonly plan: () => Promise<Plan>
}

/** Opens the database that the gateway uses, safely beside it, and closes it after the work. Never makes one. */
export async function withInstallation<T>(
  options: InstallationOptions,
  work: (installation: Installation) => Promise<T>,
): Promise<T> {
  const environment = readEnvironment(process.env)
  const store = await openPresent(environment)
  if (store === undefined) throw new Error(`${describeAbsence(environment)}: start the gateway once first (npm start)`)
  try {
    const plan = async () => planNow(options.config, await anyAccount(store.db, 'real'))
    return await work({ environment, store, mode: options.mode ?? (await plan()).mode, plan })
  } finally {
    await store.close()
  }
}

/** What a start would offer now, with or without a database. */
export async function planStart(config: string | undefined): Promise<Plan> {
  return planNow(config, await hasRealAccount(readEnvironment(process.env)))
}

function planNow(config: string | undefined, hasRealAccount: boolean): Plan {
  return planMarket({ file: loadSettings(config).file, variables: process.env, hasRealAccount })
}

export async function hasRealAccount(environment: Environment): Promise<boolean> {
  const store = await openPresent(environment)
  if (store === undefined) return false
  try {
    return await anyAccount(store.db, 'real')
  } finally {
    await store.close()
  }
}

/** A key hashed under another secret than the gateway's would be no key at all, so none is made up here. */
export function secretKeysOf(environment: Environment): SecretKeys {
  return makeSecretKeys(secretOf(environment))
}

/** The installation's secret, as the gateway has it. */
export function secretOf(environment: Environment): Uint8Array {
  const { secret, dataFolder } = environment
  if (secret === undefined && !existsSync(join(dataFolder, 'secret'))) {
    throw new Error(`${join(dataFolder, 'secret')} is missing: give TURNPIKE_SECRET as the gateway has it`)
  }
  return installationSecret(secret, dataFolder)
}

/** Whether a gateway has ever been started here. Looking makes nothing. */
export async function isInstalled(environment: Environment): Promise<boolean> {
  const { databaseUrl } = environment
  if (databaseUrl === undefined) return existsSync(databaseFile(environment))
  // As the store does: its driver is loaded where there is a server to talk to.
  const { openPostgres } = await import('../store/postgres.ts')
  const db = new Kysely<unknown>({ dialect: openPostgres(databaseUrl, 'requests') })
  try {
    const { rows } = await sql`select 1 from pg_class where oid = to_regclass('account')`.execute(db)
    return rows.length > 0
  } finally {
    await db.destroy()
  }
}

async function openPresent(environment: Environment): Promise<Store | undefined> {
  const { databaseUrl } = environment
  try {
    if (!(await isInstalled(environment))) return undefined
    return await openStore(databaseUrl === undefined ? { file: databaseFile(environment) } : { url: databaseUrl })
  } catch (thrown) {
    if (isUnavailable(thrown)) throw new Error('the database does not answer', { cause: thrown })
    throw thrown
  }
}

function describeAbsence(environment: Environment): string {
  if (environment.databaseUrl !== undefined) return 'there is nothing in this PostgreSQL database yet'
  return `there is no database at ${databaseFile(environment)} yet`
}
