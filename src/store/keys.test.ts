import { expect, test } from 'bun:test'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, fundedAccount } from '../../test/support/ledger.ts'
import { createAccount } from './accounts.ts'
import { addAdminKey, anyAdminKey, hasAdminKey } from './admin-keys.ts'
import { listAudit, readRevision } from './audit.ts'
import { changeKey, insertKey, keyByDigest, keyById, listKeys, revokeKey } from './keys.ts'
import type { KeyLimits } from './schema.ts'
import { claimSetting, readSetting } from './settings.ts'

const key = { id: 'key_a', accountId, digest: 'd1', hint: 'wxyz', actor: 'test' }

eachEngine('keys', (open) => {
  test('a digest leads to the key and its account', async () => {
    const store = await open()
    await fundedAccount(store)
    const made = await insertKey(store, { ...key, models: ['gpt-*'], metadata: { team: 'x' } })
    const found = await keyByDigest(store.db, 'd1')
    expect(found?.key).toEqual(made)
    expect(found?.account).toEqual({ id: accountId, mode: 'sandbox', enabled: true, cap: null })
    expect(await keyByDigest(store.db, 'd2')).toBeUndefined()
  })

  test('a key needs an existing account and a digest of its own', async () => {
    const store = await open()
    expect(insertKey(store, key)).rejects.toThrow()
    await fundedAccount(store)
    await insertKey(store, key)
    expect(insertKey(store, { ...key, id: 'key_b' })).rejects.toThrow()
    expect(await keyById(store.db, 'key_b')).toBeUndefined()
  })

  test('a change affects only the given fields, and a revoked key cannot be changed', async () => {
    const store = await open()
    await fundedAccount(store)
    await insertKey(store, { ...key, limits: { concurrent: 2 }, expiresAt: 7 })
    const before = await readRevision(store.db)
    const changed = await changeKey(store, { id: 'key_a', actor: 'admin', name: 'new', expiresAt: null })
    expect(changed).toMatchObject({ name: 'new', expiresAt: null, limits: { concurrent: 2 }, enabled: true })
    expect(await changeKey(store, { id: 'key_a', actor: 'admin' })).toEqual(changed)
    expect(await readRevision(store.db)).toBe(before + 1)
    await changeKey(store, { id: 'key_a', actor: 'admin', metadata: { team: 'x' } })
    expect((await listAudit(store.db, { limit: 1 }))[0]?.detail).toEqual({ metadata: { team: 'x' } })

    expect(await revokeKey(store, { id: 'key_a', actor: 'admin' })).toBe(true)
    expect(await revokeKey(store, { id: 'key_a', actor: 'admin' })).toBe(false)
    expect(await changeKey(store, { id: 'key_a', actor: 'admin', enabled: true })).toBeUndefined()
    expect((await keyByDigest(store.db, 'd1'))?.key).toMatchObject({ enabled: false, revokedAt: expect.any(Number) })
    expect(await readRevision(store.db)).toBe(before + 3)
  })

  test('of several changes of one limit each, made at once, none is lost', async () => {
    const store = await open()
    await fundedAccount(store)
    await insertKey(store, key)
    const given = [{ concurrent: 2 }, { requestsPerMinute: 30 }, { tokensPerMinute: 9 }]
    const change = (limit: KeyLimits) =>
      changeKey(store, { id: 'key_a', actor: 'test', limits: (before) => ({ ...before, ...limit }) })
    await Promise.all(given.map(change))
    expect((await keyById(store.db, 'key_a'))?.limits).toEqual(Object.assign({}, ...given))
    expect(await changeKey(store, { id: 'key_b', actor: 'test', limits: () => null })).toBeUndefined()
  })

  test('keys are listed for one account, for all accounts, or by mode', async () => {
    const store = await open()
    await fundedAccount(store)
    await fundedAccount(store, { id: 'acc_b' })
    await insertKey(store, key)
    await insertKey(store, { ...key, id: 'key_b', accountId: 'acc_b', digest: 'd2' })
    const ids = async (scope: Parameters<typeof listKeys>[1]['scope'], after = '') =>
      (await listKeys(store.db, { scope, limit: 9, after })).map(({ id }) => id)
    expect(await ids({ accountId })).toEqual(['key_a'])
    expect(await ids('every-account')).toEqual(['key_a', 'key_b'])
    expect(await ids('every-account', 'key_a')).toEqual(['key_b'])
    const real = await createAccount(store, { id: 'acc_real', name: 'real', mode: 'real', actor: 'test' })
    expect(real.outcome).toBe('created')
    await insertKey(store, { ...key, id: 'key_real', accountId: 'acc_real', digest: 'd3' })
    for (const [mode, own] of [
      ['sandbox', ['key_a', 'key_b']],
      ['real', ['key_real']],
    ] as const) {
      const listed = await listKeys(store.db, { scope: 'every-account', mode, limit: 9 })
      expect(listed.map(({ id }) => id)).toEqual([...own])
    }
  })

  test('an admin key is found by its digest', async () => {
    const store = await open()
    expect(await anyAdminKey(store.db)).toBe(false)
    await addAdminKey(store, 'x')
    await addAdminKey(store, 'x')
    expect([await anyAdminKey(store.db), await hasAdminKey(store.db, 'x'), await hasAdminKey(store.db, 'y')]).toEqual([
      true,
      true,
      false,
    ])
  })

  test('concurrent claims of a setting agree on one value', async () => {
    const store = await open()
    const claims = await Promise.all(['a', 'b', 'c'].map((value) => claimSetting(store.db, 'first', value)))
    expect(new Set(claims).size).toBe(1)
    expect(await readSetting(store.db, 'first')).toBe(claims[0] ?? '')
  })
})
