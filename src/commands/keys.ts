import { modelPatterns } from '../admin/fields.ts'
import { keyState, showKey } from '../admin/show.ts'
import { newId } from '../base/ids.ts'
import { allows } from '../keys/scope.ts'
import { hintOf } from '../keys/secret-keys.ts'
import type { Plan } from '../plan.ts'
import { accountById, type Account } from '../store/accounts.ts'
import { revokeAdminKeys } from '../store/admin-keys.ts'
import { changeKey, insertKey, keyById, listKeys, revokeKey, type ApiKey } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { accountNamed, allAccounts, allPages, nameFrom } from './accounts.ts'
import {
  ifGiven,
  isTrue,
  mustChange,
  readCap,
  readLimits,
  readMetadata,
  showCap,
  showLimits,
  type LimitOptions,
} from './options.ts'
import { readExpiry } from './expiry.ts'
import {
  actor,
  inEitherMode,
  secretKeysOf,
  withInstallation,
  type InstallationOptions as Options,
} from './installation.ts'
import { say, sayJson, sheet, showTime, table, warn, type Column } from './output.ts'

/** The options that say what a key may do. */
type Allowance = LimitOptions & {
  readonly name?: string
  readonly models?: string
  readonly expires?: string
  readonly cap?: string
  readonly metadata?: string
}

/** `turnpike keys create` */
export async function create(options: Options & Allowance & { account: string }): Promise<void> {
  const models = ifGiven(options.models, readPatterns)
  const expiresAt = ifGiven(options.expires, readExpiry)
  const limits = readLimits(options)
  const cap = ifGiven(options.cap, readCap)
  const metadata = ifGiven(options.metadata, readMetadata)
  await withInstallation(options, async ({ environment, store, mode, plan }) => {
    const account = await accountNamed(store, mode, options.account)
    if (models) warnOfStrays(models, await plan())
    const secretKeys = await secretKeysOf({ environment, store })
    const key = secretKeys.make('sk')
    const made = await insertKey(store, {
      id: newId('key'),
      accountId: account.id,
      digest: secretKeys.digest(account.mode, key),
      hint: hintOf(key),
      actor,
      models,
      expiresAt,
      limits,
      cap,
      metadata,
      name: ifGiven(options.name, keyNameFrom),
    })
    const row = { key: made, account: account.name }
    if (options.json) return sayJson({ ...show(row), key })
    say('The new key (shown only now; Turnpike keeps a keyed hash of it):')
    say(`  ${key}`)
    say()
    say(
      sheet({
        id: made.id,
        account: `${account.name} (${account.mode})`,
        models: scope(row),
        limits: showLimits(made.limits),
        cap: showCap(made.cap),
        expires: expiry(row),
      }),
    )
  })
}

/** `turnpike keys change`: changes only the given fields. */
export async function change(
  id: string,
  options: Omit<Options, 'mode'> & Allowance & { enabled?: string },
): Promise<void> {
  const { json, config: _, ...given } = options
  mustChange(given)
  const models = ifGiven(options.models, readPatterns)
  await inEitherMode(options, async ({ store, plan }) => {
    if (models) warnOfStrays(models, await plan())
    const changed = await changeKey(store, {
      id,
      actor,
      name: ifGiven(options.name, keyNameFrom),
      models,
      expiresAt: ifGiven(options.expires, readExpiry),
      cap: ifGiven(options.cap, readCap),
      enabled: ifGiven(options.enabled, isTrue),
      metadata: ifGiven(options.metadata, readMetadata),
      limits: (before) => readLimits(options, before),
    })
    if (changed === undefined) throw new Error(`there is no active key "${id}"; turnpike keys list shows all keys`)
    const account = await accountById(store.db, changed.accountId)
    if (json) return sayJson(show({ key: changed, account: account?.name ?? '' }))
    say(`${id} was changed; every node knows within a few seconds.`)
  })
}

/** `turnpike keys list` */
export async function list(options: Options & { account?: string }): Promise<void> {
  await withInstallation(options, async ({ store, mode }) => {
    const only = options.account === undefined ? undefined : await accountNamed(store, mode, options.account)
    const rows = await keysOf(store, only === undefined ? await allAccounts(store, mode) : [only])
    if (options.json) return sayJson({ data: rows.map(show) })
    if (rows.length === 0) return say(`No keys were found in ${mode} mode.`)
    say(table(columns, rows))
  })
}

/** `turnpike keys revoke-operators` */
export async function revokeOperators(options: Pick<Options, 'json'>): Promise<void> {
  await inEitherMode({}, async ({ store }) => {
    const revoked = await revokeAdminKeys(store, actor)
    if (options.json) return sayJson({ revoked })
    const next = 'The next start takes TURNPIKE_ADMIN_KEY, or makes a new one and prints it.'
    say(`${revoked === 1 ? '1 key of an operator is' : `${revoked} keys of operators are`} revoked. ${next}`)
  })
}

/** `turnpike keys revoke` */
export async function revoke(id: string, options: Pick<Options, 'json'>): Promise<void> {
  await inEitherMode({}, async ({ store }) => {
    const done = await revokeKey(store, { id, actor })
    const known = done ? undefined : await keyById(store.db, id)
    if (!done && known === undefined) throw new Error(`there is no key "${id}"; turnpike keys list shows their ids`)
    if (options.json) return sayJson({ id, revoked: true })
    say(done ? `${id} was revoked; every node refuses it within 5 seconds.` : `${id} was revoked already.`)
  })
}

/** The keys of one account, or of all accounts of a mode. */
export async function keysOf(store: Store, accounts: readonly Account[]): Promise<KeyRow[]> {
  const names = new Map(accounts.map(({ id, name }) => [id, name]))
  const [only] = accounts
  const whose = accounts.length === 1 && only !== undefined ? { accountId: only.id } : 'every-account'
  const keys = await allPages((page) => listKeys(store.db, { ...page, scope: whose }))
  return keys.flatMap((key) => {
    const account = names.get(key.accountId)
    return account === undefined ? [] : [{ key, account }]
  })
}

/** A key and the name of its account. */
type KeyRow = { readonly key: ApiKey; readonly account: string }

/** The columns by which people recognise a key. */
export const whoseColumns: readonly Column<KeyRow>[] = [
  { name: 'ACCOUNT', show: ({ account }) => account },
  { name: 'NAME', show: ({ key }) => key.name || '-' },
  { name: 'KEY', show: ({ key }) => `sk-…${key.hint}` },
]

/** Whose a record is, with the names by which people know the account and the key beside their ids. */
export async function whose(
  store: Store,
  ids: { readonly account: string; readonly key: string },
): Promise<{ account: string; key: string }> {
  const account = await accountById(store.db, ids.account)
  const key = await keyById(store.db, ids.key)
  return {
    account: named(ids.account, account === undefined ? [] : [account.name]),
    key: named(ids.key, key === undefined ? [] : [key.name, `sk-…${key.hint}`]),
  }
}

function named(id: string, names: readonly string[]): string {
  const given = names.filter((name) => name !== '')
  return given.length === 0 ? id : `${id} (${given.join(', ')})`
}

const columns: readonly Column<KeyRow>[] = [
  ...whoseColumns,
  { name: 'STATE', show: ({ key }) => keyState(key, Date.now()) },
  { name: 'MODELS', show: scope },
  { name: 'LIMITS', show: ({ key }) => showLimits(key.limits) },
  { name: 'CAP', align: 'right', show: ({ key }) => showCap(key.cap) },
  { name: 'EXPIRES', show: expiry },
  { name: 'CREATED', show: ({ key }) => showTime(key.createdAt) },
  { name: 'ID', show: ({ key }) => key.id },
]

function scope({ key }: KeyRow): string {
  return key.models === null ? 'all' : key.models.join(', ')
}

function expiry({ key }: KeyRow): string {
  return key.expiresAt === null ? 'never' : showTime(key.expiresAt)
}

function show({ key, account }: KeyRow) {
  return showKey(key, account, Date.now())
}

/** A key's name may be empty. */
function keyNameFrom(text: string): string {
  return text === '' ? text : nameFrom(text)
}

/** The models that a key may use; null is every model. */
function readPatterns(text: string): string[] | null {
  if (text === 'all') return null
  const patterns = text.split(',').map((pattern) => pattern.trim())
  if (!modelPatterns.safeParse(patterns).success) {
    throw new Error("--models takes ids or patterns in lower case with commas between them, such as 'gpt-*,o3'")
  }
  return patterns
}

/** Not an error: tomorrow's catalogue may have the model, and a key that allows too little is safe. */
function warnOfStrays(patterns: readonly string[], { catalogue }: Plan): void {
  const models = [...catalogue.models.keys()]
  for (const pattern of patterns) {
    if (!models.some((model) => allows([pattern], model))) warn(`no model matches "${pattern}" now`)
  }
}
