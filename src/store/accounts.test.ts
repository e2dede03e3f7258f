import { expect, test } from 'bun:test'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, balances, fundedAccount, holdOf, settlementOf } from '../../test/support/ledger.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { nano } from '../base/money.ts'
import {
  accountById,
  changeAccount,
  createAccount,
  credit,
  creditSourceIn,
  findAccount,
  listAccounts,
} from './accounts.ts'
import { listAudit, readRevision } from './audit.ts'
import { takeHold } from './holds.ts'
import { settleHold } from './ledger.ts'
import type { Store } from './open.ts'

const manual = { accountId, source: 'cash:manual', actor: 'test' } as const

/** So that what comes at once is at work at once: a call that had to connect first would come after the others. */
async function connect(store: Store, connections: number): Promise<void> {
  await Promise.all(Array.from({ length: connections }, () => accountById(store.db, accountId)))
}

eachEngine('accounts', (open) => {
  test('an account name is unique within each mode', async () => {
    const store = await open()
    const first = { id: 'acc_1', name: 'demo', mode: 'sandbox', actor: 'test' } as const
    expect(await createAccount(store, first)).toMatchObject({ outcome: 'created' })
    expect(await createAccount(store, { ...first, id: 'acc_2' })).toEqual({ outcome: 'name-taken' })
    expect(await createAccount(store, { ...first, id: 'acc_3', mode: 'real' })).toMatchObject({ outcome: 'created' })

    const ids = async (nameOrId: string, mode: 'sandbox' | 'real') =>
      (await findAccount(store.db, { nameOrId, mode }))?.id
    expect(await ids('demo', 'sandbox')).toBe('acc_1')
    expect(await ids('demo', 'real')).toBe('acc_3')
    expect(await ids('acc_1', 'real')).toBe('acc_1')
    expect(await ids('nobody', 'real')).toBeUndefined()
  })

  test('a name given to several accounts at once goes to exactly one of them', async () => {
    const store = await open()
    const ids = ['a', 'b', 'c', 'd']
    for (const id of ids) await fundedAccount(store, { id })
    const changes = ids.map((id) => changeAccount(store, { id, actor: 'test', name: 'wanted' }))
    const outcomes = (await Promise.all(changes)).map(({ outcome }) => outcome)
    expect(outcomes.toSorted()).toEqual(['changed', 'name-taken', 'name-taken', 'name-taken'])
  })

  // The last line of defence: whatever a mistake in a query would write.
  test.each([
    ['less than nothing', { posted: nano(-1n) }, 'account_covers_holds'],
    ['more on hold than there is', { held: nano(101n) }, 'account_covers_holds'],
    ['a negative hold', { held: nano(-1n) }, 'account_held_positive'],
    ['more than 64 bits add exactly', { posted: nano(4_000_000_000_000_000_001n) }, 'account_bounded'],
  ] as const)('the database itself refuses an account with %s', async (_name, changed, rule) => {
    const store = await open()
    await fundedAccount(store, { amount: 100n })
    const write = store.db.updateTable('account').set(changed).where('id', '=', accountId).execute()
    expect(String(await thrownBy(write))).toContain(rule)
    expect(await accountById(store.db, accountId)).toMatchObject({ posted: nano(100n), held: nano(0n) })
  })

  test('credits are booked on both sides, and never take a balance below zero', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 100n })
    expect(await credit(store, { ...manual, amount: nano(50n), note: 'paid' })).toMatchObject({ outcome: 'credited' })
    expect(await credit(store, { ...manual, amount: nano(-151n) })).toEqual({
      outcome: 'below-zero',
      available: nano(150n),
    })
    await takeHold(store, holdOf('a', 30n))
    expect(await credit(store, { ...manual, amount: nano(-121n) })).toMatchObject({ outcome: 'below-zero' })
    expect(await credit(store, { ...manual, amount: nano(-120n) })).toMatchObject({ outcome: 'credited' })
    expect(await accountById(store.db, accountId)).toMatchObject({ posted: nano(30n), held: nano(30n) })
    const expected = { promo: nano(-100n), 'cash:manual': nano(70n), 'cust:acc_a': nano(30n) }
    expect(await balances(store)).toEqual(expected)
    expect(await credit(store, { ...manual, accountId: 'acc_x', amount: nano(1n) })).toEqual({ outcome: 'absent' })
  })

  test('an account whose first credit cannot be booked is not made', async () => {
    const store = await open()
    const credit = { amount: nano(-1n), source: 'promo' } as const
    const made = createAccount(store, { id: 'acc_b', name: 'b', mode: 'sandbox', actor: 'test', credit })
    expect(await made.catch(String)).toContain('below-zero')
    expect(await accountById(store.db, 'acc_b')).toBeUndefined()
  })

  test('concurrent withdrawals cannot overdraw an account', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 100n })
    const tries = Array.from({ length: 10 }, () => credit(store, { ...manual, amount: nano(-30n) }))
    const credited = (await Promise.all(tries)).filter((one) => one.outcome === 'credited')
    expect(credited).toHaveLength(3)
  })

  test('a credit with an id is posted once', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 100n })
    const once = { ...manual, amount: nano(5n), id: 'from-outside' }
    expect(await credit(store, once)).toMatchObject({ outcome: 'credited' })
    expect(await credit(store, once)).toMatchObject({ outcome: 'repeated', account: { posted: nano(105n) } })
    expect(await credit(store, { ...once, amount: nano(6n) })).toEqual({ outcome: 'conflict' })
    expect((await accountById(store.db, accountId))?.posted).toBe(nano(105n))
  })

  test('of credits with one id at once, one is posted and the others are told that it is', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 100n })
    await connect(store, 4)
    const once = { ...manual, amount: nano(5n), id: 'from-outside' }
    const booked = await Promise.all(Array.from({ length: 4 }, () => credit(store, once)))
    expect(booked.map(({ outcome }) => outcome).toSorted()).toEqual(['credited', 'repeated', 'repeated', 'repeated'])
    expect(await balances(store)).toEqual({ promo: nano(-100n), 'cash:manual': nano(-5n), 'cust:acc_a': nano(105n) })
  })

  test('of credits to several accounts with one id at once, one is posted and the others are told of the conflict', async () => {
    const store = await open()
    const ids = ['acc_a', 'acc_b', 'acc_c', 'acc_d']
    for (const id of ids) await createAccount(store, { id, name: id, mode: 'sandbox', actor: 'test' })
    await connect(store, ids.length)
    const once = { ...manual, amount: nano(5n), id: 'from-outside' }
    const booked = await Promise.all(ids.map((id) => credit(store, { ...once, accountId: id })))
    expect(booked.map(({ outcome }) => outcome).toSorted()).toEqual(['conflict', 'conflict', 'conflict', 'credited'])
    expect(await balances(store)).toMatchObject({ 'cash:manual': nano(-5n) })
  })

  test('a sum that 64 bits could not hold is refused by the database', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 4_000_000_000_000_000_000n })
    expect(credit(store, { ...manual, amount: nano(9_000_000_000_000_000_000n) })).rejects.toThrow()
  })

  test('an account that owes can be disabled, but cannot stop being unlimited', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 0n, unlimited: true })
    await takeHold(store, holdOf('a', 30n))
    await settleHold(store, settlementOf('a', 30n))
    const change = { id: accountId, actor: 'test', unlimited: false }
    expect(await changeAccount(store, change)).toEqual({ outcome: 'below-zero', posted: nano(-30n), held: nano(0n) })
    const disabled = await changeAccount(store, { id: accountId, actor: 'test', enabled: false })
    expect(disabled).toMatchObject({ outcome: 'changed', account: { enabled: false, unlimited: true } })
    await credit(store, { ...manual, amount: nano(30n) })
    expect(await changeAccount(store, change)).toMatchObject({ outcome: 'changed', account: { unlimited: false } })
  })

  test('only the given fields change, and each change is audited and moves the revision', async () => {
    let now = 1
    const store = await open({ clock: { now: () => now++ } })
    await fundedAccount(store)
    expect(await readRevision(store.db)).toBe(0)

    const cap = { amount: nano(9n), period: 'month' } as const
    await changeAccount(store, { id: accountId, actor: 'admin', cap })
    await changeAccount(store, { id: accountId, actor: 'cli', name: 'renamed', enabled: false })
    expect(await accountById(store.db, accountId)).toMatchObject({ name: 'renamed', enabled: false, cap })
    expect(await changeAccount(store, { id: accountId, actor: 'cli', cap: null })).toMatchObject({
      account: { cap: null, name: 'renamed' },
    })
    expect(await changeAccount(store, { id: 'acc_x', actor: 'cli' })).toEqual({ outcome: 'absent' })
    expect(await readRevision(store.db)).toBe(3)

    const [last, ...earlier] = await listAudit(store.db, { limit: 2 })
    expect(last).toMatchObject({ actor: 'cli', action: 'account.change' })
    expect(last?.detail).toEqual({ cap: null })
    expect(earlier[0]?.detail).toEqual({ name: 'renamed', enabled: false })
    const next = await listAudit(store.db, { limit: 9, before: earlier[0] ?? { at: 0, id: '' } })
    expect(next.map((record) => record.action)).toEqual(['account.change', 'account.create'])
  })

  test('accounts are listed page by page', async () => {
    const store = await open()
    for (const id of ['c', 'a', 'b']) await fundedAccount(store, { id })
    const first = await listAccounts(store.db, { limit: 2 })
    const rest = await listAccounts(store.db, { limit: 2, after: 'b' })
    expect([...first, ...rest].map((account) => account.id)).toEqual(['a', 'b', 'c'])
    expect(await listAccounts(store.db, { limit: 9, mode: 'real' })).toEqual([])
  })
})

test('play money is given away, and real money was paid in', () => {
  expect([creditSourceIn('sandbox'), creditSourceIn('real')]).toEqual(['promo', 'cash:manual'])
})
