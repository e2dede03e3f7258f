import { newId } from '../base/ids.ts'
import { parseDollars, zeroNano } from '../base/money.ts'
import { accountById, createAccount, accountByName, type Account } from '../store/accounts.ts'
import { addAdminKey, anyAdminKey } from '../store/admin-keys.ts'
import { isUniqueViolation } from '../store/faults.ts'
import { insertKey, keyByDigest, reinstateKey } from '../store/keys.ts'
import { type Transactor, joinTransaction } from '../store/transactor.ts'
import type { Store } from '../store/open.ts'
import type { Mode, Tx } from '../store/schema.ts'
import { claimSetting, readSetting, writeSetting } from '../store/settings.ts'
import { hintOf, type SecretKeys } from './secret-keys.ts'

/** What a start found or made. A key is here only if it was made now, because it is shown once and kept as a digest. */
export type FirstStart = {
  readonly account: Account
  readonly key: string | undefined
  readonly adminKey: string | undefined
}

const actor = 'start'
const secretMark = 'secret-mark'
const playMoney = parseDollars('100') ?? zeroNano

/**
 * Each mode has a first account, made once; keys that the environment gives are valid from every start that gives them.
 * All of it is one transaction: if a start fails, its keys were never shown, and the next start makes new ones.
 */
export async function ensureFirstAccount(parts: {
  store: Store
  secretKeys: SecretKeys
  mode: Mode
  bootstrapKey: string | undefined
  adminKey: string | undefined
}): Promise<FirstStart> {
  const { store, secretKeys, mode } = parts
  const ensure = () =>
    store.transaction(async (tx) => {
      const start = { tx, changing: joinTransaction(store, tx), secretKeys }
      const account = await firstAccount(start, mode)
      const key = await ensureKey(start, account, parts.bootstrapKey)
      const adminKey = await ensureAdminKey(start, parts.adminKey)
      return { account, key, adminKey }
    })
  return ensure().catch((thrown: unknown) => {
    // Another node, started at the same time with the same new key, was quicker: now its key is found.
    if (isUniqueViolation(thrown)) return ensure()
    throw thrown
  })
}

/**
 * Whether the start before this one had another secret. A node with another secret knows none of the existing keys:
 * that is intended where the secret was replaced, and a mistake where it is one of several nodes.
 */
export async function recordSecretChange(store: Store, secretKeys: SecretKeys): Promise<boolean> {
  const isOther = await hadOtherSecret(store, secretKeys)
  await writeSetting(store.db, secretMark, secretKeys.mark)
  return isOther
}

/** The same without noting our own secret, for commands that work beside a running gateway. */
export async function hadOtherSecret(store: Store, { mark }: SecretKeys): Promise<boolean> {
  const before = await readSetting(store.db, secretMark)
  return before !== undefined && before !== mark
}

type Start = { readonly tx: Tx; readonly changing: Transactor; readonly secretKeys: SecretKeys }

async function firstAccount({ tx, changing }: Start, mode: Mode): Promise<Account> {
  const setting = `first-account:${mode}`
  const known = await readSetting(tx, setting)
  const found = known === undefined ? undefined : await accountById(tx, known)
  if (found !== undefined) return found
  const name = mode === 'sandbox' ? 'demo' : 'main'
  // In real mode the operator pays the vendors: the first account is metered and never refused for lack of funds.
  await createAccount(changing, {
    id: newId('acc'),
    name,
    mode,
    actor,
    ...(mode === 'sandbox' ? { credit: { amount: playMoney, source: 'promo' as const } } : { unlimited: true }),
  })
  const made = await accountByName(tx, { mode, name })
  if (made === undefined) throw new Error(`the first account of ${mode} mode could not be made`)
  await claimSetting(tx, setting, made.id)
  return made
}

/** Gives the key only when it was made now. */
async function ensureKey(
  { tx, changing, secretKeys }: Start,
  account: Account,
  given: string | undefined,
): Promise<string | undefined> {
  const setting = `first-key:${account.mode}`
  if (given === undefined && (await readSetting(tx, setting)) !== undefined) return undefined
  const key = given ?? secretKeys.make('sk')
  const digest = secretKeys.digest(account.mode, key)
  const found = await keyByDigest(tx, digest)
  const id = found?.key.id ?? newId('key')
  // A given key counts as the first one too: otherwise a later start without it would make and print an unexpected key.
  const first = await claimSetting(tx, setting, id)
  if (found !== undefined) {
    const { enabled, revokedAt, expiresAt } = found.key
    const isExpired = expiresAt !== null && expiresAt <= changing.now()
    if (!enabled || revokedAt !== null || isExpired) await reinstateKey(changing, { id, actor })
    return undefined
  }
  // Of several nodes that start at once, one makes the key.
  if (given === undefined && first !== id) return undefined
  await insertKey(changing, { id, accountId: account.id, digest, hint: hintOf(key), actor, name: 'first' })
  return given === undefined ? key : undefined
}

async function ensureAdminKey(
  { tx, changing, secretKeys }: Start,
  given: string | undefined,
): Promise<string | undefined> {
  if (given === undefined && (await anyAdminKey(tx))) return undefined
  const key = given ?? secretKeys.make('adm')
  await addAdminKey(changing, secretKeys.digest('admin', key))
  return given === undefined ? key : undefined
}
