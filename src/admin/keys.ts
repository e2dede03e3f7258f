import { z } from 'zod'
import { newId } from '../base/ids.ts'
import { hintOf } from '../keys/secret-keys.ts'
import { exactText, pageFields, pageOf, readQuery } from '../reports/query.ts'
import { accountNames, findAccount } from '../store/accounts.ts'
import { changeKey, insertKey, keyById, listKeys, revokeKey, type ApiKey } from '../store/keys.ts'
import { absent, readCall, type Call } from './call.ts'
import { cap, expiry, keyName, limits, metadata, modelPatterns } from './fields.ts'
import { checkPlace, noSuchAccount, scopeOf } from './filters.ts'
import type { AdminParts } from './routes.ts'
import { showKey } from './show.ts'

export function keyCalls({ store, mode, secretKeys, clock }: AdminParts) {
  const fields = {
    name: keyName.exactOptional(),
    models: modelPatterns.nullable().exactOptional(),
    limits: limits.nullable().exactOptional(),
    cap: cap.nullable().exactOptional(),
    expires_at: expiry(() => clock.now())
      .nullable()
      .exactOptional(),
    metadata: metadata.exactOptional(),
  }
  const newKey = z.strictObject({ account: exactText, ...fields })
  const changed = z.strictObject({ ...fields, enabled: z.boolean().exactOptional() })
  const listed = z.strictObject({ ...pageFields, account: exactText.exactOptional() })

  async function show(keys: readonly ApiKey[]) {
    const names = await accountNames(
      store.db,
      keys.map(({ accountId }) => accountId),
    )
    return (key: ApiKey) => showKey(key, names.get(key.accountId) ?? '', clock.now())
  }

  const showOne = async (key: ApiKey) => (await show([key]))(key)

  return {
    /** `POST /admin/keys`: the only answer that contains the key itself. */
    create: async (call: Call) => {
      const { body } = await readCall(call, newKey)
      const { account: nameOrId, expires_at: expiresAt, ...rest } = body
      const account = await findAccount(store.db, { mode, nameOrId })
      if (account === undefined) throw noSuchAccount()
      const key = secretKeys.make('sk')
      const made = await insertKey(store, {
        ...rest,
        id: newId('key'),
        accountId: account.id,
        digest: secretKeys.digest(account.mode, key),
        hint: hintOf(key),
        actor: call.actor,
        expiresAt,
      })
      const { id, ...shown } = await showOne(made)
      return { id, key, ...shown }
    },

    /** `GET /admin/keys`: in the order of their ids, revoked ones too; `?account=` takes a name or an id. */
    list: async ({ visit }: Call) => {
      const { limit, after, account } = readQuery(visit.request, listed)
      const scope = await scopeOf({ store, mode }, account)
      await checkPlace('keys', store.db, after)
      const keys = await listKeys(store.db, {
        scope,
        mode: scope === 'every-account' ? mode : undefined,
        limit: limit + 1,
        after,
      })
      return pageOf(keys, limit, await show(keys), ({ id }) => id)
    },

    /** `PATCH /admin/keys/{id}`: fields that are not given stay as they are, null removes a value. */
    change: async (call: Call) => {
      const { body } = await readCall(call, changed)
      const { expires_at: expiresAt, ...rest } = body
      const key = await changeKey(store, { ...rest, id: call.id, actor: call.actor, expiresAt })
      if (key === undefined) throw absent('key')
      return showOne(key)
    },

    /** `DELETE /admin/keys/{id}`: revokes a key for good. A second call changes nothing. */
    revoke: async ({ id, actor }: Call) => {
      const done = await revokeKey(store, { id, actor })
      if (!done && (await keyById(store.db, id)) === undefined) throw absent('key')
      return { id, revoked: true }
    },
  }
}
