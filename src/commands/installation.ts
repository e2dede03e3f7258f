import { existsSync } from 'node:fs'
import { type Dialect, Kysely } from 'kysely'
import { systemClock } from '../base/clock.ts'
import { databaseFile, readEnvironment, type Environment } from '../config/environment.ts'
import { installationSecret, secretFile } from '../config/installation-secret.ts'
import { hadOtherSecret } from '../keys/first-start.ts'
import { makeSecretKeys, type SecretKeys } from '../keys/secret-keys.ts'
import { planMarket, type Plan } from '../plan.ts'
import { anyAccount } from '../store/accounts.ts'
import { isAway } from '../store/faults.ts'
import { hasTable } from '../store/migrate.ts'
import { cannotOpen, openStore, type Store, type StoreOptions } from '../store/open.ts'
import type { Mode, Queries, Schema } from '../store/schema.ts'
import { openSqlite } from '../store/sqlite.ts'
import { loadSettings } from './settings.ts'

/** The options of commands that work on the database: the file of settings, whose accounts are meant, and the form. */
export type InstallationOptions = { readonly config?: string; readonly mode?: Mode; readonly json?: boolean }

/** The actor that the audit records for changes by a command. */
export const actor = 'cli'

export type Installation = {
  readonly environment: Environment
  readonly store: Store
  readonly mode: Mode
  /**
   * What a start would offer now. Read only when called, because a broken file of settings must not stop a command that
   * does not need it.
   */
  readonly plan: () => Promise<Plan>
}

// No customer waits for a command, and an operator may need one just because the database is busy. SQLite's own wait
// (`store/sqlite.ts`) is as long.
const patienceMs = 5_000

/** Opens the database that the gateway uses, safely beside it, and closes it after the work. Never creates one. */
export async function withInstallation<T>(
  options: InstallationOptions,
  work: (installation: Installation) => Promise<T>,
): Promise<T> {
  return inEitherMode(options, async (opened) => work({ ...opened, mode: options.mode ?? (await opened.plan()).mode }))
}

/** For work that is the same in both modes, such as on a key, whose id is enough to find it. */
export async function inEitherMode<T>(
  { config }: Pick<InstallationOptions, 'config'>,
  work: (installation: Omit<Installation, 'mode'>) => Promise<T>,
): Promise<T> {
  const environment = readEnvironment(process.env)
  const store = await openPresent(environment)
  if (store === undefined) throw new Error(describeAbsence(environment))
  try {
    return await work({
      environment,
      store,
      plan: async () => planNow(config, await anyAccount(store.db, 'real')),
    })
  } finally {
    await store.close()
  }
}

/** What a start would offer now, with or without a database. */
export async function planStart(config: string | undefined): Promise<Plan> {
  return planNow(config, await hasRealAccount(readEnvironment(process.env)))
}

function planNow(config: string | undefined, hasRealAccount: boolean): Plan {
  return planMarket({ file: loadSettings(config).file, variables: process.env, hasRealAccount, clock: systemClock })
}

export async function hasRealAccount(environment: Environment): Promise<boolean> {
  const isReal = () => look(environment, (db) => anyAccount(db, 'real'))
  return reach(environment, async () => (await isInstalled(environment)) && isReal())
}

/** Never makes up a secret, because a key hashed under another one than the gateway's would not work. */
export async function secretKeysOf(installation: Opened): Promise<SecretKeys> {
  return makeSecretKeys(await secretOf(installation))
}

type Opened = Pick<Installation, 'environment' | 'store'>

/** The installation's secret, as the gateway has it. */
export async function secretOf({ environment, store }: Opened): Promise<Uint8Array> {
  const { secret: given, dataFolder } = environment
  const file = secretFile(dataFolder)
  if (given === undefined && !existsSync(file)) throw new Error(`${file} is missing: ${asItHas}`)
  const secret = installationSecret(given, dataFolder)
  if (await hadOtherSecret(store, makeSecretKeys(secret))) {
    throw new Error(`the last start on this database used a different secret: ${asItHas}`)
  }
  return secret
}

const asItHas = 'give TURNPIKE_SECRET as the gateway has it'

/** Whether a gateway has ever been started here. The check creates nothing. */
export async function isInstalled(environment: Environment): Promise<boolean> {
  if (environment.databaseUrl === undefined && !existsSync(databaseFile(environment))) return false
  return look(environment, (db) => hasTable(db, 'account'))
}

/** Reads a database without migrating it, which is left to a start: these commands only ask what a start would do. */
async function look<T>(environment: Environment, read: (db: Queries) => Promise<T>): Promise<T> {
  const db = new Kysely<Schema>({ dialect: await dialectOf(environment) })
  try {
    return await read(db)
  } finally {
    await db.destroy()
  }
}

async function dialectOf(environment: Environment): Promise<Dialect> {
  const { databaseUrl } = environment
  if (databaseUrl === undefined) return openSqlite(databaseFile(environment))
  // Imported here, as in the store, so that an installation on SQLite never loads the driver.
  const { openPostgres } = await import('../store/postgres.ts')
  return openPostgres(databaseUrl, 'requests', patienceMs)
}

async function openPresent(environment: Environment): Promise<Store | undefined> {
  return reach(environment, async (place) => ((await isInstalled(environment)) ? openStore(place) : undefined))
}

async function reach<T>(environment: Environment, asked: (place: StoreOptions) => Promise<T>): Promise<T> {
  const { databaseUrl: url } = environment
  const place = url === undefined ? { file: databaseFile(environment) } : { url, waitMs: patienceMs }
  try {
    return await asked(place)
  } catch (thrown) {
    if (url === undefined || !isAway(thrown)) throw cannotOpen(place, thrown)
    throw new Error(`the database does not answer: ${String(thrown)}`, { cause: thrown })
  }
}

function describeAbsence(environment: Environment): string {
  const start = 'start the gateway once first (npm start)'
  if (environment.databaseUrl !== undefined) return `there is nothing in this PostgreSQL database yet: ${start}`
  return `there is no database at ${databaseFile(environment)} yet: ${start}, or give TURNPIKE_DATA as the gateway has it`
}
