import { expect, test } from 'bun:test'
import { CompiledQuery, type RootOperationNode } from 'kysely'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, attemptOf, fundedAccount, holdOf, requestOf, settlementOf } from '../../test/support/ledger.ts'
import { newTask, recorded } from '../../test/support/stored-tasks.ts'
import { nano } from '../base/money.ts'
import type { Usage } from '../capabilities/usage.ts'
import { createAccount } from './accounts.ts'
import { takeHold } from './holds.ts'
import { settleHold } from './ledger.ts'
import type { Store } from './open.ts'
import type { AttemptRecord } from './requests.ts'
import { addUsage, hourMs, usedBy } from './rollups.ts'
import type { Tx } from './schema.ts'
import { recordTask } from './tasks.ts'
import { listRequests, requestById } from './request-lists.ts'
import { groupings } from './groupings.ts'
import { spentSince, sumUsage } from './usage.ts'

const day = 86_400_000
const monday = 20_000 * day
const scope = { accountId }

/** Three requests of one account on two days, and one of another account. */
async function history(store: Store): Promise<void> {
  await fundedAccount(store)
  await fundedAccount(store, { id: 'acc_b' })
  const sold = [
    { id: 'a', price: 10n, at: monday + 1, model: 'gpt-x', input: 5 },
    { id: 'b', price: 20n, at: monday + 2, model: 'claude-y', input: 6 },
    { id: 'c', price: 30n, at: monday + day, model: 'gpt-x', input: 7 },
    { id: 'other', price: 99n, at: monday + 3, model: 'gpt-x', input: 8 },
  ]
  for (const { id, price, at, model, input } of sold) {
    const owner = id === 'other' ? 'acc_b' : accountId
    await takeHold(store, holdOf(id, 100n, { accountId: owner }))
    const request = requestOf(id, { createdAt: at, model, keyId: id === 'b' ? 'key_b' : 'key_a' })
    const attempts = [attemptOf(id, price / 2n, { createdAt: at, vendor: model === 'gpt-x' ? 'openai' : 'anthropic' })]
    const hold = { id, accountId: owner }
    await settleHold(store, settlementOf(id, price, { hold, request, attempts, usage: { input, reasoning: 1 } }))
  }
}

const used = (id: string, createdAt: number, usage: Usage) =>
  usedBy({
    accountId,
    cost: nano(10n),
    usage,
    request: requestOf(id, { createdAt }),
    // The vendor that delivered counts, wherever its attempt stands; what the other attempts cost is a cost too.
    attempts: [attemptOf(id, 4n, { vendor: 'ark' }), attemptOf(`${id}_lost`, 3n, { delivered: false })],
  })

const sumOf = (requests: number) => ({
  vendor: 'ark',
  requests,
  cost: nano(10n * BigInt(requests)),
  vendor_cost: nano(7n * BigInt(requests)),
  input: 5 * requests,
  images: 2 * requests,
  video_seconds: 6 * requests,
})

eachEngine('usage', (open, _place, engine) => {
  test('an account sees its own requests, newest first, page by page', async () => {
    const store = await open()
    await history(store)
    const first = await listRequests(store.db, { scope }, { limit: 2 })
    expect(first.map(({ id }) => id)).toEqual(['req_c', 'req_b'])
    const rest = await listRequests(store.db, { scope }, { limit: 2, before: first[1] ?? { createdAt: 0, id: '' } })
    expect(rest.map(({ id }) => id)).toEqual(['req_a'])
    expect(await listRequests(store.db, { scope: 'every-account' }, { limit: 9 })).toHaveLength(4)
    expect(await requestById(store.db, { scope, id: 'req_other' })).toBeUndefined()
    expect((await requestById(store.db, { scope, id: 'req_a' }))?.attempts).toHaveLength(1)
  })

  test('requests are filtered by key, model and time', async () => {
    const store = await open()
    await history(store)
    const ids = async (filter: object) =>
      (await listRequests(store.db, { scope, ...filter }, { limit: 9 })).map(({ id }) => id)
    expect(await ids({ keyId: 'key_b' })).toEqual(['req_b'])
    expect(await ids({ model: 'gpt-x' })).toEqual(['req_c', 'req_a'])
    expect(await ids({ from: monday + 2, to: monday + day })).toEqual(['req_b'])
  })

  test('usage is summed by day, by model and by every other grouping', async () => {
    const store = await open()
    await history(store)
    expect(await sumUsage(store, { scope }, 'day')).toMatchObject([
      { group: monday, requests: 2, cost: nano(30n), vendorCost: nano(15n), counts: { input: 11, reasoning: 2 } },
      { group: monday + day, requests: 1, cost: nano(30n), counts: { input: 7, reasoning: 1, output: 0 } },
    ])
    const byModel = await sumUsage(store, { scope: 'every-account' }, 'model')
    expect(byModel.map(({ group, cost }) => [group, cost])).toEqual([
      ['claude-y', nano(20n)],
      ['gpt-x', nano(139n)],
    ])
    for (const by of ['nothing', ...groupings] as const) {
      const sums = await sumUsage(store, { scope }, by)
      expect(sums.reduce((total, row) => total + row.cost, 0n)).toBe(60n)
    }
    const costOf = async (filter: object) => (await sumUsage(store, { scope, ...filter }, 'nothing'))[0]?.cost
    expect(await costOf({ keyId: 'key_b' })).toBe(nano(20n))
    expect(await costOf({ model: 'gpt-x' })).toBe(nano(40n))
    expect(await costOf({ from: monday, to: monday + day })).toBe(nano(30n))
    expect(await costOf({ from: monday + day })).toBe(nano(30n))
    expect(await sumUsage(store, { scope: { accountId: 'acc_x' } }, 'nothing')).toMatchObject([
      { group: null, requests: 0, cost: nano(0n), counts: { input: 0 } },
    ])
  })

  test('usage that is added at once is summed per hour and per day', async () => {
    const store = await open()
    await fundedAccount(store)
    const made = { input: 5, images: { count: 2 }, video: { seconds: 6, resolution: '720p' } }
    const added = [used('a', monday, made), used('b', monday + hourMs, made), used('c', monday + hourMs + 1, made)]
    await store.transaction((tx) => addUsage(tx, added))
    const hours = await store.db.selectFrom('usage_hour').selectAll().orderBy('hour').execute()
    expect(hours).toMatchObject([sumOf(1), sumOf(2)])
    expect(await store.db.selectFrom('usage_day').selectAll().execute()).toMatchObject([sumOf(3)])
  })

  test('sums fetched page by page equal the whole list for every grouping', async () => {
    const store = await open()
    await history(store)
    for (const by of groupings) {
      const whole = await sumUsage(store, { scope: 'every-account', mode: 'sandbox' }, by)
      const paged: typeof whole = []
      for (;;) {
        const last = paged.at(-1)?.group ?? undefined
        const page = await sumUsage(store, { scope: 'every-account' }, by, {
          limit: 1,
          ...(last !== undefined && { after: last }),
        })
        if (page.length === 0) break
        paged.push(...page)
      }
      expect(paged).toEqual(whole)
    }
    expect(await sumUsage(store, { scope: 'every-account', mode: 'real' }, 'model')).toEqual([])
    expect(await listRequests(store.db, { scope: 'every-account', mode: 'real' }, { limit: 9 })).toEqual([])
  })

  test('the sum of a period equals the cost of its requests, wherever in a day it begins or ends', async () => {
    const store = await open()
    await fundedAccount(store)
    const hours = [0, 5, 24, 30, 47, 48]
    for (const [at, hour] of hours.entries()) {
      const request = requestOf(String(hour), { createdAt: monday + hour * hourMs + 1 })
      await takeHold(store, holdOf(String(hour), 10n))
      await settleHold(store, settlementOf(String(hour), BigInt(at + 1), { request }))
    }
    const edges = [undefined, 5, 24, 30, 47, 48]
    for (const from of edges) {
      for (const to of edges) {
        if (from !== undefined && to !== undefined && to <= from) continue
        const within = hours.flatMap((hour, at) => (hour < (from ?? 0) || hour >= (to ?? 99) ? [] : [BigInt(at + 1)]))
        const period = {
          ...(from !== undefined && { from: monday + from * hourMs }),
          ...(to !== undefined && { to: monday + to * hourMs }),
        }
        const cost = within.reduce((sum, one) => sum + one, 0n)
        expect(await sumUsage(store, { scope, ...period }, 'nothing')).toMatchObject([{ cost: nano(cost) }])
        const days = await sumUsage(store, { scope, ...period }, 'day')
        expect(days.reduce((sum, one) => sum + one.cost, 0n)).toBe(cost)
        // The requests of an account and a model are searched only on the days that have any.
        const listed = await listRequests(store.db, { scope, model: 'gpt-x', ...period }, { limit: 9 })
        expect(listed.map((one): bigint => one.cost).toReversed()).toEqual(within)
      }
    }
    expect(await listRequests(store.db, { scope, model: 'gpt-y' }, { limit: 9 })).toEqual([])
    const rest = await sumUsage(store, { scope }, 'hour', { limit: 2, after: monday + 5 * hourMs })
    expect(rest.map(({ group }) => group)).toEqual([monday + day, monday + 30 * hourMs])
  })

  test('usage of one mode includes only accounts of that mode', async () => {
    const store = await open()
    const at = store.now()
    for (const mode of ['sandbox', 'real'] as const) {
      await createAccount(store, { id: mode, name: mode, mode, actor: 'test', unlimited: true })
      await takeHold(store, holdOf(mode, 10n, { accountId: mode }))
      const hold = { id: mode, accountId: mode }
      const request = requestOf(mode, { createdAt: at })
      const usage = { images: { count: 3 }, video: { seconds: 5, resolution: '720p' }, character: 7 }
      await settleHold(store, settlementOf(mode, 10n, { hold, request, usage }))
    }
    for (const mode of ['sandbox', 'real'] as const) {
      const own = { scope: 'every-account', mode } as const
      expect((await listRequests(store.db, own, { limit: 9 })).map(({ id }) => id)).toEqual([`req_${mode}`])
      for (const by of ['hour', 'day', 'account'] as const) {
        expect(await sumUsage(store, own, by)).toMatchObject([
          { requests: 1, cost: nano(10n), counts: { images: 3, video_seconds: 5, character: 7, input: 0 } },
        ])
      }
    }
  })

  test('requests that are older than the first account of their mode, which a clock far ahead made, are listed', async () => {
    const store = await open()
    await history(store)
    const own = { scope: 'every-account', mode: 'sandbox' } as const
    const ids = async () => (await listRequests(store.db, own, { limit: 9 })).map(({ id }) => id)
    expect(await ids()).toEqual(['req_c', 'req_other', 'req_b', 'req_a'])
    const request = requestOf('video', { createdAt: monday - 9 * day, capability: 'video', status: 202 })
    const hold = holdOf('video', 10n, { kind: 'task' })
    await recordTask(store, { task: newTask({ requestId: request.id }), hold, request })
    expect(await ids()).toEqual(['req_c', 'req_other', 'req_b', 'req_a', 'req_video'])
    const full = await listRequests(store.db, own, { limit: 4 })
    const rest = await listRequests(store.db, own, { limit: 4, before: full[3] ?? { createdAt: 0, id: '' } })
    expect(rest.map(({ id }) => id)).toEqual(['req_video'])
  })

  // An account may have a key, with a cap, for each of its own customers: looking up one key must not go through all of
  // them and their usage.
  // Only SQLite plans a query without regard to how few rows there are.
  test.if(engine === 'sqlite')('the spending of a key is looked up without reading other keys', async () => {
    const store = await open()
    await history(store)
    let asked: RootOperationNode | undefined
    const db = store.db.withPlugin({
      transformQuery({ node }) {
        asked = node
        return node
      },
      transformResult: ({ result }) => Promise.resolve(result),
    })
    const reads = [
      () => spentSince(db, { accountId, keyId: 'key_b', since: monday }),
      () => sumUsage({ ...store, snapshot: (work) => work(db as Tx) }, { scope, keyId: 'key_b' }, 'model'),
    ]
    for (const read of reads) {
      await read()
      if (asked === undefined) throw new Error('nothing was asked')
      const plain = store.db.withoutPlugins()
      const { sql: text, parameters } = plain.getExecutor().compileQuery(asked, { queryId: 'plan' })
      const { rows } = await plain.executeQuery<{ detail: string }>(
        CompiledQuery.raw(`explain query plan ${text}`, [...parameters]),
      )
      const searches = rows.map(({ detail }) => detail).filter((detail) => detail.includes('SEARCH usage_day'))
      expect(searches).toContainEqual(expect.stringContaining('(account_id=? AND hour=? AND key_id=?)'))
    }
  })

  test('spending is summed since a given time, per account and per key', async () => {
    const store = await open()
    await history(store)
    expect(await spentSince(store.db, { accountId, since: monday })).toBe(nano(60n))
    expect(await spentSince(store.db, { accountId, since: monday + day })).toBe(nano(30n))
    expect(await spentSince(store.db, { accountId, keyId: 'key_b', since: 0 })).toBe(nano(20n))
    expect(await spentSince(store.db, { accountId: 'acc_x', since: 0 })).toBe(nano(0n))
  })

  test("an account's requests of one model include a video that is still being made, which no sum has yet", async () => {
    const store = await open()
    await history(store)
    const ids = async (filter: object) =>
      (await listRequests(store.db, { scope, ...filter }, { limit: 9 })).map(({ id }) => id)
    const { requestId } = await recorded(store)
    const { model, createdAt } = requestOf('')
    expect(await ids({ model })).toEqual([requestId, 'req_c', 'req_a'])
    expect(await ids({ model, to: createdAt })).toEqual(['req_c', 'req_a'])
    expect(await ids({ model, from: createdAt, keyId: 'key_b' })).toEqual([])
    expect(await ids({ model: 'claude-y' })).toEqual(['req_b'])
    const alone = await recorded(store, { accountId: 'acc_b' })
    const others = await listRequests(
      store.db,
      { scope: { accountId: 'acc_b' }, model, from: monday + day },
      { limit: 9 },
    )
    expect(others.map(({ id }) => id)).toEqual([alone.requestId])
  })

  test('the sums count a started second of video as one', async () => {
    const store = await open()
    await fundedAccount(store)
    await takeHold(store, holdOf('v', 10n))
    const usage = { video: { seconds: 10.02, resolution: '720p' } }
    await settleHold(store, settlementOf('v', 10n, { usage }))
    expect(await sumUsage(store, { scope }, 'nothing')).toMatchObject([{ requests: 1, counts: { video_seconds: 11 } }])
  })
})

const vendorOf = (...attempts: AttemptRecord[]) =>
  usedBy({ accountId, cost: nano(0n), usage: null, request: requestOf('a'), attempts }).vendor

test('a request counts under the vendor that delivered, else under the last one called, else under none', () => {
  const [lost, alsoLost] = [
    { vendor: 'ark', delivered: false },
    { vendor: 'veo', delivered: false },
  ]
  expect(vendorOf(attemptOf('a', 1n), attemptOf('b', 1n, lost))).toBe('openai')
  expect(vendorOf(attemptOf('a', 1n, lost), attemptOf('b', 1n, alsoLost))).toBe('veo')
  expect(vendorOf()).toBe('')
})
