import { expect, test } from 'bun:test'
import { eachEngine } from '../../test/support/engines.ts'
import { accountByName, changeAccount } from '../store/accounts.ts'
import { hasAdminKey } from '../store/admin-keys.ts'
import { changeKey, insertKey, keyByDigest, listKeys, revokeKey } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { ensureFirstAccount, recordSecretChange, type FirstStart } from './first-start.ts'
import { makeSecretKeys } from './secret-keys.ts'

const secretKeys = makeSecretKeys(Buffer.alloc(32, 'x'))
const mode = 'sandbox'
const given = { bootstrapKey: undefined, adminKey: undefined }

function start(store: Store, environment: { bootstrapKey?: string; adminKey?: string } = {}): Promise<FirstStart> {
  return ensureFirstAccount({ store, secretKeys, mode, ...given, ...environment })
}

/** A store that loses one of its transactions. */
function losing(store: Store, lost: number): Store {
  let transactions = 0
  return {
    ...store,
    transaction: (work) =>
      store.transaction(async (tx) => {
        const done = await work(tx)
        if (++transactions === lost) throw new Error('the database went away')
        return done
      }),
  }
}

eachEngine('a first start', (open) => {
  test('a first start makes an account, a key and an admin key, and shows them once', async () => {
    const store = await open()
    const first = await start(store)
    expect(first).toMatchObject({ account: { name: 'demo' }, key: expect.stringMatching(/^sk-/) })
    expect(first.adminKey).toMatch(/^adm-/)
    expect(await start(store)).toEqual({ account: first.account, key: undefined, adminKey: undefined })
    expect(first.account).toMatchObject({ posted: 100_000_000_000n, unlimited: false })
    const real = await ensureFirstAccount({ store, secretKeys, ...given, mode: 'real' })
    expect(real.account).toMatchObject({ name: 'main', mode: 'real', posted: 0n, unlimited: true })
    expect(real.key).toMatch(/^sk-/)
    expect(real.adminKey).toBeUndefined()
  })

  test('the first account stays the first one under another name', async () => {
    const store = await open()
    const { account } = await start(store)
    await changeAccount(store, { id: account.id, actor: 'test', name: 'ours' })
    expect(await start(store)).toMatchObject({ account: { id: account.id, name: 'ours' } })
    expect(await accountByName(store.db, { mode, name: account.name })).toBeUndefined()
  })

  test('a start reports whether the secret has changed since the last one', async () => {
    const store = await open()
    const other = makeSecretKeys(Buffer.alloc(32, 'y'))
    const told = []
    for (const keys of [secretKeys, secretKeys, other, other, secretKeys])
      told.push(await recordSecretChange(store, keys))
    expect(told).toEqual([false, false, true, false, true])
  })

  test.each([1, 2, 3, 4])(
    'after transaction %d of a first start is lost, every key that exists was shown, and no other',
    async (lost) => {
      const store = await open()
      const starts = [await start(losing(store, lost)).catch(() => undefined), await start(store)]
      const keys = starts.flatMap((one) => (one?.key === undefined ? [] : [one.key]))
      const adminKeys = starts.flatMap((one) => (one?.adminKey === undefined ? [] : [one.adminKey]))
      expect([keys.length, adminKeys.length]).toEqual([1, 1])
      expect(await keyByDigest(store.db, secretKeys.digest(mode, keys[0] ?? ''))).toBeDefined()
      expect(await hasAdminKey(store.db, secretKeys.digest('admin', adminKeys[0] ?? ''))).toBe(true)
      expect(await listKeys(store.db, { scope: 'every-account', limit: 10 })).toHaveLength(1)
    },
  )

  test('exactly one of several nodes that start at once shows the key', async () => {
    const store = await open()
    const starts = await Promise.all(Array.from({ length: 4 }, () => start(store)))
    expect(starts.filter(({ key }) => key !== undefined)).toHaveLength(1)
    expect(new Set(starts.map(({ account }) => account.id)).size).toBe(1)
  })

  test('keys from the environment are accepted at every start, and none is shown', async () => {
    const store = await open()
    const environment = { bootstrapKey: 'sk-given-by-the-operator', adminKey: 'adm-given-by-the-operator' }
    for (let starts = 0; starts < 2; starts++) {
      expect(await start(store, environment)).toMatchObject({ key: undefined, adminKey: undefined })
    }
    expect(await keyByDigest(store.db, secretKeys.digest(mode, environment.bootstrapKey))).toBeDefined()
    expect(await hasAdminKey(store.db, secretKeys.digest('admin', environment.adminKey))).toBe(true)
  })

  test('a start without given keys makes none after a start that was given some', async () => {
    const store = await open()
    await start(store, { bootstrapKey: 'sk-given-by-the-operator', adminKey: 'adm-given-by-the-operator' })
    expect(await start(store)).toMatchObject({ key: undefined, adminKey: undefined })
    expect(await listKeys(store.db, { scope: 'every-account', limit: 10 })).toHaveLength(1)
  })

  test('several nodes that are given a new key at once all start, and store it once', async () => {
    const store = await open()
    await start(store)
    const environment = { bootstrapKey: 'sk-given-by-the-operator' }
    await Promise.all(Array.from({ length: 4 }, () => start(store, environment)))
    expect(await listKeys(store.db, { scope: 'every-account', limit: 10 })).toHaveLength(2)
  })

  test.each(['revoked', 'disabled', 'expired'] as const)(
    'a start makes a key from the environment that is %s valid again, and no other key',
    async (how) => {
      const store = await open()
      const environment = { bootstrapKey: 'sk-given-by-the-operator' }
      const { account } = await start(store, environment)
      await insertKey(store, { id: 'key_leaked', accountId: account.id, digest: 'leaked', hint: 'aked', actor: 'test' })
      const keys = () => listKeys(store.db, { scope: 'every-account', limit: 10 })
      const change = { disabled: { enabled: false }, expired: { expiresAt: 1 } } as const
      const end = (id: string) =>
        how === 'revoked'
          ? revokeKey(store, { id, actor: 'test' })
          : changeKey(store, { id, actor: 'test', ...change[how] })
      for (const { id } of await keys()) await end(id)
      await start(store, environment)
      const found = await keyByDigest(store.db, secretKeys.digest(mode, environment.bootstrapKey))
      expect(found?.key).toMatchObject({ enabled: true, revokedAt: null, expiresAt: null })
      const leaked = (await keyByDigest(store.db, 'leaked'))?.key
      expect(leaked).toMatchObject(how === 'expired' ? { expiresAt: 1 } : { enabled: false })
      expect(await keys()).toHaveLength(2)
    },
  )
})
