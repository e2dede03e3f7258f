import { describe, expect, test } from 'bun:test'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, attemptOf, balances, fundedAccount } from '../../test/support/ledger.ts'
import { postingOf, returnOf, standingOf, takeOf, turnOf } from '../../test/support/turns.ts'
import { nano } from '../base/money.ts'
import { changeAccount } from './accounts.ts'
import type { Store } from './open.ts'
import { type Grant, grantFor } from './turn-accounts.ts'
import { Fenced, openNode, resolveLostTurn, takeTurn } from './turns.ts'

/** A node that has leased this amount of the account. */
async function leasing(store: Store, amount: bigint, node = 'node_a') {
  const { epoch, turn } = await openNode(store, node, [])
  const identity = { node, epoch }
  await takeTurn(store, identity, turnOf(turn + 1, { takes: [takeOf(amount)] }))
  return { identity, turn: turn + 1 }
}

const account = async (store: Store) => (await standingOf(store)).accounts[0]

eachEngine('a turn', (open) => {
  test('a turn posts charges and returns part of the lease in one commit', async () => {
    const store = await open()
    await fundedAccount(store)
    const { identity, turn } = await leasing(store, 100n)
    await store.db.updateTable('node').set({ seen_at: 0 }).execute()
    const attempts = [attemptOf('lost', 4n, { delivered: false }), attemptOf('good', 20n)]
    const grants = await takeTurn(
      store,
      identity,
      turnOf(turn + 1, {
        postings: [postingOf('a', 30n, { attempts, excess: nano(7n) }), postingOf('b', 0n, { attempts: [] })],
        returns: [returnOf(50n)],
      }),
    )
    expect(grants).toEqual(new Map())
    // `seen_at` must be set, because a silent node is taken for dead.
    expect((await store.db.selectFrom('node').select('seen_at').executeTakeFirst())?.seen_at).toBeGreaterThan(0)
    expect(await standingOf(store)).toEqual({
      accounts: [{ id: accountId, posted: nano(970n), held: nano(20n) }],
      leases: [{ node: 'node_a', account: accountId, amount: nano(20n) }],
    })
    expect(await balances(store)).toEqual({
      promo: nano(-1_000n),
      [`cust:${accountId}`]: nano(970n),
      'revenue:gpt-x': nano(37n),
      'platform:loss': nano(-11n),
      'cost:openai': nano(-20n),
      'payable:openai': nano(24n),
    })
    const requests = await store.db.selectFrom('request').select(['id', 'cost', 'basis']).orderBy('id').execute()
    expect(requests).toEqual([
      { id: 'req_a', cost: nano(30n), basis: 'vendor' },
      { id: 'req_b', cost: nano(0n), basis: 'vendor' },
    ])
    const calls = await store.db
      .selectFrom('attempt')
      .select(['id', 'request_id', 'vendor_cost', 'delivered'])
      .orderBy('id')
      .execute()
    expect(calls).toEqual([
      { id: 'att_good', request_id: 'req_a', vendor_cost: nano(20n), delivered: true },
      { id: 'att_lost', request_id: 'req_a', vendor_cost: nano(4n), delivered: false },
    ])
  })

  test('a turn of an older process is refused whole, as is its question about a lost turn', async () => {
    const store = await open()
    await fundedAccount(store)
    const old = await leasing(store, 100n)
    const { epoch, turn, leases } = await openNode(store, 'node_a', [])
    expect({ epoch, turn, leases }).toEqual({ epoch: 2, turn: 1, leases: new Map([[accountId, nano(100n)]]) })
    const before = await standingOf(store)
    const late = turnOf(2, { postings: [postingOf('a', 30n)], takes: [takeOf(5n)], returns: [returnOf(10n)] })
    expect(takeTurn(store, old.identity, late)).rejects.toBeInstanceOf(Fenced)
    expect(resolveLostTurn(store, old.identity, 2)).rejects.toBeInstanceOf(Fenced)
    expect(await standingOf(store)).toEqual(before)
    expect(await store.db.selectFrom('request').selectAll().execute()).toEqual([])
    // The new process goes on as if nothing had happened.
    await takeTurn(store, { node: 'node_a', epoch }, turnOf(2, { returns: [returnOf(100n)] }))
    expect(await account(store)).toMatchObject({ held: nano(0n) })
  })

  test('a turn whose number is not the next one is refused', async () => {
    const store = await open()
    await fundedAccount(store)
    const { identity } = await leasing(store, 100n)
    for (const number of [0, 1, 3]) {
      expect(takeTurn(store, identity, turnOf(number, { takes: [takeOf(5n)] }))).rejects.toBeInstanceOf(Fenced)
    }
    expect(await account(store)).toMatchObject({ held: nano(100n) })
  })

  test('a process whose database was set back is told so, and not that another process runs', async () => {
    const store = await open()
    await fundedAccount(store)
    const { identity } = await leasing(store, 100n)
    const restarted = { ...identity, epoch: identity.epoch + 1 }
    const unknown = { ...identity, node: 'node_b' }
    expect(takeTurn(store, identity, turnOf(3))).rejects.toThrow('the database lacks what')
    for (const who of [restarted, unknown]) {
      expect(takeTurn(store, who, turnOf(2))).rejects.toThrow('the database lacks what')
      expect(resolveLostTurn(store, who, 2)).rejects.toThrow('the database lacks what')
    }
    expect(takeTurn(store, identity, turnOf(1))).rejects.toThrow('another process runs')
  })

  test('a hold is posted once, also when it is sent again in a later turn or after a restart', async () => {
    const store = await open()
    await fundedAccount(store)
    const { identity, turn } = await leasing(store, 100n)
    await takeTurn(store, identity, turnOf(turn + 1, { postings: [postingOf('a', 30n)] }))
    await takeTurn(store, identity, turnOf(turn + 2, { postings: [postingOf('a', 30n), postingOf('b', 5n)] }))
    const opened = await openNode(store, 'node_a', ['hold_a', 'hold_b', 'hold_c'])
    expect(opened.posted).toEqual(new Set(['hold_a', 'hold_b']))
    const again = { node: 'node_a', epoch: opened.epoch }
    await takeTurn(store, again, turnOf(opened.turn + 1, { postings: [postingOf('b', 5n), postingOf('a', 31n)] }))
    expect(await account(store)).toEqual({ id: accountId, posted: nano(965n), held: nano(65n) })
    const costs = await store.db.selectFrom('request').select(['id', 'cost']).orderBy('id').execute()
    expect(costs).toEqual([
      { id: 'req_a', cost: nano(30n) },
      { id: 'req_b', cost: nano(5n) },
    ])
  })

  test('a hold is posted once, even after the record of its request was deleted', async () => {
    const store = await open()
    await fundedAccount(store)
    const { identity, turn } = await leasing(store, 100n)
    const withoutAttempt = postingOf('a', 30n, { attempts: [] })
    await takeTurn(store, identity, turnOf(turn + 1, { postings: [withoutAttempt] }))
    await store.db.deleteFrom('request').where('id', '=', 'req_a').execute()
    await takeTurn(store, identity, turnOf(turn + 2, { postings: [withoutAttempt, postingOf('b', 5n)] }))
    expect(await account(store)).toEqual({ id: accountId, posted: nano(965n), held: nano(65n) })
  })

  test('a request is counted once in the sums, even if it costs nothing', async () => {
    const store = await open()
    await fundedAccount(store)
    const { identity, turn } = await leasing(store, 100n)
    const free = postingOf('free', 0n, { attempts: [] })
    await takeTurn(store, identity, turnOf(turn + 1, { postings: [free] }))
    await takeTurn(store, identity, turnOf(turn + 2, { postings: [free, postingOf('a', 30n)] }))
    await takeTurn(store, identity, turnOf(turn + 3, { postings: [postingOf('a', 30n)] }))
    for (const table of ['usage_hour', 'usage_day'] as const) {
      const sums = await store.db.selectFrom(table).select(['vendor', 'requests', 'cost', 'output']).execute()
      expect(sums.toSorted((a, b) => (a.vendor < b.vendor ? -1 : 1))).toEqual([
        { vendor: '', requests: 1, cost: nano(0n), output: 4 },
        { vendor: 'openai', requests: 1, cost: nano(30n), output: 4 },
      ])
    }
  })

  test('a turn that spends more than its node has leased is refused whole', async () => {
    const store = await open()
    await fundedAccount(store)
    await fundedAccount(store, { id: 'acc_b' })
    const { identity, turn } = await leasing(store, 100n)
    const other = await leasing(store, 100n, 'node_b')
    await takeTurn(store, other.identity, turnOf(other.turn + 1, { takes: [takeOf(100n, 0n, 'acc_b')] }))
    const wrong = [
      { postings: [postingOf('a', 101n)] },
      { returns: [returnOf(101n)] },
      { postings: [postingOf('a', 60n)], returns: [returnOf(41n)] },
      { postings: [postingOf('b', 1n, { accountId: 'acc_b' })] },
      { returns: [returnOf(1n, 'acc_b')] },
    ]
    const before = await standingOf(store)
    for (const parts of wrong) expect(takeTurn(store, identity, turnOf(turn + 1, parts))).rejects.toThrow()
    expect(await standingOf(store)).toEqual(before)
    expect(await store.db.selectFrom('request').selectAll().execute()).toEqual([])
  })

  test('a disabled or missing account leases nothing, and an unlimited one more than its balance', async () => {
    const store = await open()
    await fundedAccount(store)
    await fundedAccount(store, { id: 'acc_free', amount: 0n, unlimited: true })
    await changeAccount(store, { id: accountId, enabled: false, actor: 'test' })
    const { epoch } = await openNode(store, 'node_a', [])
    const takes = [takeOf(5n), takeOf(5n, 0n, 'acc_nobody'), takeOf(500n, 9n, 'acc_free')]
    expect(await takeTurn(store, { node: 'node_a', epoch }, turnOf(1, { takes }))).toEqual(
      new Map<string, Grant>([
        [accountId, { kind: 'no-account' }],
        ['acc_nobody', { kind: 'no-account' }],
        ['acc_free', { kind: 'granted', amount: nano(509n) }],
      ]),
    )
  })

  test('a turn whose answer was lost either took place or never will', async () => {
    const store = await open()
    await fundedAccount(store)
    const { identity, turn } = await leasing(store, 100n)
    const lost = turnOf(turn + 1, { postings: [postingOf('a', 30n)] })
    await takeTurn(store, identity, lost)
    for (let times = 0; times < 3; times++) {
      expect(await resolveLostTurn(store, identity, turn + 1)).toEqual({
        turn: turn + 1,
        leases: new Map([[accountId, nano(70n)]]),
      })
    }
    const slow = turnOf(turn + 2, { returns: [returnOf(70n)] })
    for (let times = 0; times < 3; times++) {
      expect(await resolveLostTurn(store, identity, turn + 2)).toEqual({
        turn: turn + 3,
        leases: new Map([[accountId, nano(70n)]]),
      })
    }
    expect(takeTurn(store, identity, slow)).rejects.toBeInstanceOf(Fenced)
    await takeTurn(store, identity, { ...slow, number: turn + 4 })
    expect(await account(store)).toMatchObject({ held: nano(0n) })
  })

  test('a turn books five hundred postings at once', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 1_000_000n })
    const { identity, turn } = await leasing(store, 500_000n)
    const postings = Array.from({ length: 500 }, (_, at) => postingOf(String(at), BigInt(at)))
    await takeTurn(store, identity, turnOf(turn + 1, { postings }))
    expect(await account(store)).toMatchObject({ posted: nano(1_000_000n - 124_750n), held: nano(500_000n - 124_750n) })
  })
})

eachEngine('turns of several nodes', (open, _, engine) => {
  test.skipIf(engine === 'sqlite')(
    'concurrent turns of two nodes on the same accounts do not deadlock',
    async () => {
      const store = await open()
      for (const id of ['acc_a', 'acc_b']) await fundedAccount(store, { id, amount: 1_000_000n })
      const nodes = await Promise.all(
        ['node_a', 'node_b'].map(async (node) => {
          const { epoch } = await openNode(store, node, [])
          const identity = { node, epoch }
          const takes = ['acc_a', 'acc_b'].map((id) => takeOf(100_000n, 0n, id))
          await takeTurn(store, identity, turnOf(1, { takes }))
          return identity
        }),
      )
      // Each node posts to the account that the other leases from, in both directions, many times at once.
      const many = 50
      const work = nodes.map(async (identity, at) => {
        for (let number = 2; number < many; number++) {
          const [mine, other] = (at + number) % 2 === 0 ? ['acc_a', 'acc_b'] : ['acc_b', 'acc_a']
          const posting = postingOf(`${identity.node}.${number}`, 1n, { accountId: mine ?? '' })
          await takeTurn(store, identity, turnOf(number, { postings: [posting], takes: [takeOf(1n, 0n, other)] }))
        }
      })
      await Promise.all(work)
      const { accounts } = await standingOf(store)
      expect(accounts.reduce((sum, { posted }) => sum + posted, 0n)).toBe(2_000_000n - 2n * BigInt(many - 2))
    },
    120_000,
  )

  test('a lost turn of one node does not affect the turns of other nodes', async () => {
    const store = await open()
    await fundedAccount(store)
    const alike = await leasing(store, 10n, 'node_0')
    const { identity, turn } = await leasing(store, 100n)
    await leasing(store, 20n, 'node_b')
    const restarted = await leasing(store, 30n, 'node_b')
    expect(await resolveLostTurn(store, restarted.identity, restarted.turn)).toEqual({
      turn: restarted.turn,
      leases: new Map([[accountId, nano(50n)]]),
    })
    expect(await resolveLostTurn(store, identity, turn + 1)).toEqual({
      turn: turn + 2,
      leases: new Map([[accountId, nano(100n)]]),
    })
    // A node that must skip a turn number does not make another node of the same epoch and number skip it.
    await takeTurn(store, alike.identity, turnOf(alike.turn + 1, { returns: [returnOf(10n)] }))
    expect((await standingOf(store)).leases.map(({ node, amount }) => [node, amount])).toEqual([
      ['node_a', nano(100n)],
      ['node_b', nano(50n)],
    ])
  })

  test('concurrent turns never lease the same balance twice', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 1_000n })
    const granted: bigint[] = await Promise.all(
      Array.from({ length: 12 }, async (_, at) => {
        const node = `node_${at}`
        const { epoch } = await openNode(store, node, [])
        const grants = await takeTurn(store, { node, epoch }, turnOf(1, { takes: [takeOf(130n, 100n)] }))
        const grant = grants.get(accountId)
        return grant === undefined || grant.kind === 'no-account' ? 0n : grant.amount
      }),
    )
    const leased = granted.reduce((sum, amount) => sum + amount, 0n)
    expect(leased).toBeGreaterThan(1_000n - 130n)
    expect(await account(store)).toMatchObject({ posted: nano(1_000n), held: nano(leased) })
  })
})

describe('how much is leased', () => {
  test.each([
    { need: 10n, extra: 200n, balance: 10_000n, kind: 'granted', amount: 210n },
    { need: 10n, extra: 200n, balance: 1_010n, kind: 'granted', amount: 60n },
    { need: 10n, extra: 200n, balance: 29n, kind: 'granted', amount: 10n },
    { need: 10n, extra: 200n, balance: 10n, kind: 'granted', amount: 10n },
    { need: 0n, extra: 200n, balance: 0n, kind: 'granted', amount: 0n },
  ])(
    'a need of $need with $extra extra on a balance of $balance leases $amount',
    ({ need, extra, balance, kind, amount }) => {
      expect(grantFor(takeOf(need, extra), nano(balance))).toEqual({ kind, amount: nano(amount) } as never)
    },
  )

  test.each([
    { waiting: [10n], left: 0n, balance: 9n, amount: 0n, rest: 9n },
    { waiting: [10n], left: 0n, balance: 0n, amount: 0n, rest: 0n },
    { waiting: [10n], left: 0n, balance: -5n, amount: 0n, rest: 0n },
    { waiting: [10n], left: 4n, balance: 5n, amount: 0n, rest: 5n },
    { waiting: [10n, 3n], left: 0n, balance: 9n, amount: 3n, rest: 6n },
    { waiting: [10n, 3n, 5n, 4n], left: 2n, balance: 7n, amount: 6n, rest: 1n },
  ])(
    'where $balance does not serve all of $waiting beside $left, as much is leased as serves some',
    ({ waiting, left, balance, amount, rest }) => {
      const take = { ...takeOf(0n, 200n), waiting: waiting.map(nano), left: nano(left) }
      const short = { kind: 'short', amount: nano(amount), rest: nano(rest) } as const
      expect(grantFor(take, nano(balance))).toEqual(short)
    },
  )
})
