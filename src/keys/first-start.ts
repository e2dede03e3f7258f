import { newId } from '../base/ids.ts'
import { parseDollars, zeroNano } from '../base/money.ts'
import { accountById, createAccount, accountByName, type Account } from '../store/accounts.ts'
import { addAdminKey, anyAdminKey } from '../store/admin-keys.ts'
import { insertKey, keyByDigest, reinstateKey } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { Mode } from '../store/schema.ts'
import { claimSetting, readSetting } from '../store/settings.ts'
import { hintOf, type SecretKeys } from './secret-keys.ts'

/** What a start found or made. Keys are here only when they were made now: they are shown once and kept as digests. */
export type FirstStart = {
  readonly account: Account
  readonly key: string | undefined
  readonly adminKey: string | undefined
}

const actor = 'start'
const playMoney = parseDollars('100') ?? zeroNano

/** Each mode has a first account, made once; keys that the environment gives are valid from every start that gives them. */
export async function ensureFirstAccount(parts: {
  store: Store
  secretKeys: SecretKeys
  mode: Mode
  bootstrapKey: string | undefined
  adminKey: string | undefined
}): Promise<FirstStart> {
  const { store, secretKeys, mode } = parts
  const account = await firstAccount(store, mode)
  const key = await ensureKey(store, secretKeys, account, parts.bootstrapKey)
  const adminKey = await ensureAdminKey(store, secretKeys, parts.adminKey)
  return { account, key, adminKey }
}

async function firstAccount(store: Store, mode: Mode): Promise<Account> {
  const setting = `first-account:${mode}`
  const known = await readSetting(store.db, setting)
  const found = known === undefined ? undefined : await accountById(store.db, known)
  if (found !== undefined) return found
  const name = mode === 'sandbox' ? 'demo' : 'main'
  // In real mode the operator pays the vendors: the first account is metered and never refused for money.
  await createAccount(store, {
    id: newId('acc'),
    name,
    mode,
    actor,
    ...(mode === 'sandbox' ? { credit: { amount: playMoney, source: 'promo' as const } } : { unlimited: true }),
  })
  const made = await accountByName(store.db, { mode, name })
  if (made === undefined) throw new Error(`the first account of ${mode} mode could not be made`)
  await claimSetting(store.db, setting, made.id)
  return made
}

/** Gives the key only when it was made now. */
async function ensureKey(
  store: Store,
  secretKeys: SecretKeys,
  account: Account,
  given: string | undefined,
): Promise<string | undefined> {
  const setting = `first-key:${account.mode}`
  if (given === undefined && (await readSetting(store.db, setting)) !== undefined) return undefined
  const key = given ?? secretKeys.make('sk')
  const digest = secretKeys.digest(account.mode, key)
  const found = await keyByDigest(store.db, digest)
  if (found !== undefined) {
    if (!found.key.enabled || found.key.revokedAt !== null) await reinstateKey(store, { id: found.key.id, actor })
    return undefined
  }
  const id = newId('key')
  // Of several nodes that start at once, one makes the key.
  if (given === undefined && (await claimSetting(store.db, setting, id)) !== id) return undefined
  await insertKey(store, { id, accountId: account.id, digest, hint: hintOf(key), actor, name: 'first' })
  return given === undefined ? key : undefined
}

async function ensureAdminKey(
  store: Store,
  secretKeys: SecretKeys,
  given: string | undefined,
): Promise<string | undefined> {
  if (given === undefined && (await anyAdminKey(store.db))) return undefined
  const key = given ?? secretKeys.make('adm')
  await addAdminKey(store, secretKeys.digest('admin', key))
  return given === undefined ? key : undefined
}
