import { badRequest } from '../base/errors.ts'
import { accountById, findAccount } from '../store/accounts.ts'
import { keyById, scopeOfKey } from '../store/keys.ts'
import type { Queries, Scope } from '../store/schema.ts'
import type { AdminParts } from './routes.ts'

/**
 * Whose records are asked for: those of all accounts, or of one account, given by its id or by its name in the mode
 * that the gateway runs in. An unknown account is refused, because zeros would look like an account that has used
 * nothing.
 */
export async function scopeOf({ store, mode }: Pick<AdminParts, 'store' | 'mode'>, account?: string): Promise<Scope> {
  if (account === undefined) return 'every-account'
  const found = await findAccount(store.db, { mode, nameOrId: account })
  if (found === undefined) throw noSuchAccount()
  return { accountId: found.id }
}

/** The same with a key, which is given by its id only. */
export async function scopeWithKey(db: Queries, scope: Scope, id: string | undefined): Promise<Scope> {
  if (id === undefined) return scope
  const narrowed = await scopeOfKey(db, scope, id)
  if (narrowed === undefined) throw badRequest('There is no such key. Give its id.', 'key', 'key_not_found')
  return narrowed
}

/** Checks where a page begins. Accounts and keys are never deleted, so the `next` of a page always exists. */
export async function checkPlace(of: 'accounts' | 'keys', db: Queries, after: string | undefined): Promise<void> {
  if (after === undefined) return
  const found = of === 'accounts' ? await accountById(db, after) : await keyById(db, after)
  if (found === undefined) throw badRequest(`'after' must be the 'next' of the previous page.`, 'after')
}

export function noSuchAccount() {
  return badRequest('There is no such account. Give its id or its name.', 'account', 'account_not_found')
}
