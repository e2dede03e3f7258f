import { expect, test } from 'bun:test'
import { sql } from 'kysely'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, fundedAccount, holdOf } from '../../test/support/ledger.ts'
import { put, recorded } from '../../test/support/stored-tasks.ts'
import { nano } from '../base/money.ts'
import { takeHold } from './holds.ts'
import { bringForward, claimTasks, dropClaims, hintTask, releaseClaims, renewClaims } from './task-claims.ts'
import { heldByTasks, holdsOfTasks, knownUpstreamIds, listTasks, typicalTaskMs } from './task-lists.ts'
import { taskById } from './tasks.ts'

// Beside each task there is another that differs in one respect, and must not show in an answer about the first.
eachEngine('claims and lists of tasks', (open, _place, engine) => {
  const funded = async () => {
    const store = await open({ books: 'unchecked' })
    await fundedAccount(store)
    await fundedAccount(store, { id: 'acc_b' })
    return store
  }

  test('claims and known upstream ids are limited to one channel', async () => {
    const store = await funded()
    const now = store.now()
    const [own, other] = [await recorded(store), await recorded(store, { channel: 'second' })]
    for (const { id } of [own, other]) {
      const free = { claim_owner: null, claim_until: null, next_poll_at: now }
      await put(store, id, { ...free, upstream_id: `up-${id}`, sent_at: now })
    }
    const claim = { owner: 'node_a', until: now + 60_000 }
    const claimed = await claimTasks(store, { channel: 'first', limit: 9, now, mode: 'sandbox', claim })
    expect(claimed.map(({ id }) => id)).toEqual([own.id])
    expect([...(await knownUpstreamIds(store.db, { channel: 'first', sentSince: now }))]).toEqual([`up-${own.id}`])
  })

  test('a task that another node is claiming at this moment is passed over', async () => {
    const store = await funded()
    const now = store.now()
    const [taken, free] = [await recorded(store), await recorded(store)]
    for (const { id } of [taken, free])
      await put(store, id, { claim_owner: null, claim_until: null, next_poll_at: now })
    const [claimed, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const claiming = store.transaction(async (tx) => {
      const claim = { claim_owner: 'node_a', claim_until: now + 60_000 }
      await tx.updateTable('task').set(claim).where('id', '=', taken.id).execute()
      claimed.resolve()
      await commit.promise
    })
    await claimed.promise
    const claim = { owner: 'node_b', until: now + 60_000 }
    const others = claimTasks(store, { channel: 'first', limit: 9, now, mode: 'sandbox', claim })
    // SQLite has one writer at a time; on PostgreSQL a node does not wait for another.
    if (engine === 'postgres') await others
    commit.resolve()
    await claiming
    expect((await others).map(({ id }) => id)).toEqual([free.id])
  })

  test('the longest due tasks are claimed first', async () => {
    const store = await funded()
    const now = store.now()
    const tasks = [await recorded(store), await recorded(store), await recorded(store)]
    const [second, last, first] = tasks
    for (const [task, dueMs] of [
      [last, 1],
      [first, 3],
      [second, 2],
    ] as const) {
      await put(store, task?.id ?? '', { claim_owner: null, claim_until: null, next_poll_at: now - dueMs })
    }
    const claim = { owner: 'node_a', until: now + 60_000 }
    const claimed = await claimTasks(store, { channel: 'first', limit: 2, now, mode: 'sandbox', claim })
    expect(claimed.map(({ id }) => id)).toEqual([first?.id ?? '', second?.id ?? ''])
  })

  test('at a start, what the node had claimed or a clock far ahead put off is due, and an ended task is not', async () => {
    const store = await funded()
    const now = store.now()
    const hour = 3_600_000
    const [own, ended, far, near] = [
      await recorded(store),
      await recorded(store),
      await recorded(store),
      await recorded(store),
    ]
    await put(store, own.id, { claim_owner: 'node_a', next_poll_at: now + 9 })
    await put(store, ended.id, { claim_owner: 'node_a', next_poll_at: null })
    for (const [{ id }, at] of [
      [far, now + hour + 1],
      [near, now + hour],
    ] as const) {
      await put(store, id, { claim_owner: 'node_b', next_poll_at: at })
    }
    await releaseClaims(store.db, 'node_a', now)
    const rows = await store.db.selectFrom('task').select(['id', 'next_poll_at', 'claim_owner']).execute()
    expect(Object.fromEntries(rows.map((row) => [row.id, [row.next_poll_at, row.claim_owner]]))).toEqual({
      [own.id]: [now, null],
      [ended.id]: [null, 'node_a'],
      [far.id]: [now, 'node_b'],
      [near.id]: [now + hour, 'node_b'],
    })
  })

  test('a claim is renewed only by its owner', async () => {
    const store = await funded()
    const [own, done, lost] = [await recorded(store), await recorded(store), await recorded(store)]
    const until = store.now() + 60_000
    for (const { id } of [own, done]) await put(store, id, { claim_owner: 'node_a', claim_until: until })
    await put(store, lost.id, { claim_owner: 'node_b', claim_until: until })
    await renewClaims(store.db, [own.id, lost.id], { owner: 'node_a', until: until + 1 })
    const rows = await store.db.selectFrom('task').select(['id', 'claim_until']).execute()
    expect(Object.fromEntries(rows.map((row) => [row.id, row.claim_until]))).toEqual({
      [own.id]: until + 1,
      [done.id]: until,
      [lost.id]: until,
    })
  })

  test('a claim is given up only by its owner, and only for the tasks that are named', async () => {
    const store = await funded()
    const [own, busy, lost] = [await recorded(store), await recorded(store), await recorded(store)]
    for (const { id } of [own, busy]) await put(store, id, { claim_owner: 'node_a' })
    await put(store, lost.id, { claim_owner: 'node_b' })
    await dropClaims(store.db, [own.id, lost.id], 'node_a')
    const rows = await store.db.selectFrom('task').select(['id', 'claim_owner']).execute()
    expect(Object.fromEntries(rows.map((row) => [row.id, row.claim_owner]))).toEqual({
      [own.id]: null,
      [busy.id]: 'node_a',
      [lost.id]: 'node_b',
    })
  })

  test('a clock that was set back moves coming polls, claims of its own node and tasks in creation, and no past time', async () => {
    const store = await funded()
    const now = store.now()
    const ahead = { next_poll_at: now + 9_000, claim_until: now + 9_000, sent_at: now + 9_000 }
    const past = { next_poll_at: now - 1, claim_until: now - 1, sent_at: now - 1 }
    const [own, due, lost] = [await recorded(store), await recorded(store), await recorded(store)]
    await put(store, own.id, { ...ahead, state: 'creating', claim_owner: 'node_a' })
    await put(store, due.id, { ...past, state: 'creating', claim_owner: 'node_a' })
    await put(store, lost.id, { ...ahead, state: 'submitted', claim_owner: 'node_b' })
    await bringForward(store.db, { owner: 'node_a', now, ms: 5_000 })
    const moved = { next_poll_at: now + 4_000, claim_until: now + 4_000, sent_at: now + 4_000 }
    const rows = await store.db.selectFrom('task').select(['id', 'next_poll_at', 'claim_until', 'sent_at']).execute()
    expect(Object.fromEntries(rows.map(({ id, ...times }) => [id, times]))).toEqual({
      [own.id]: moved,
      [due.id]: past,
      [lost.id]: { ...ahead, next_poll_at: now + 4_000 },
    })
  })

  test('a hint affects only its own task', async () => {
    const store = await funded()
    const [own, other] = [await recorded(store), await recorded(store)]
    const later = store.now() + 60_000
    for (const state of ['submitted', 'running'] as const) {
      for (const { id } of [own, other]) await put(store, id, { state, next_poll_at: later })
      expect(await hintTask(store.db, own.id, later - 1)).toBe(true)
    }
    expect((await taskById(store.db, { scope: 'every-account', id: other.id }))?.nextPollAt).toBe(later)
  })

  test('money held by tasks is counted per account and key while it is held', async () => {
    const store = await funded()
    const own = await recorded(store)
    const [, others] = [await recorded(store, { keyId: 'key_b' }), await recorded(store, { accountId: 'acc_b' })]
    // The hold of a request is no task's: caps count it elsewhere, and would count it twice.
    await takeHold(store, holdOf('request', 5n))
    expect(await heldByTasks(store.db, { accountId })).toBe(nano(20n))
    expect(await heldByTasks(store.db, { accountId, keyId: 'key_b' })).toBe(nano(10n))
    await store.db.updateTable('hold').set({ state: 'void' }).where('id', '=', own.holdId).execute()
    expect(await heldByTasks(store.db, { accountId })).toBe(nano(10n))
    expect(await holdsOfTasks(store.db, [own, others])).toEqual(new Map([[others.holdId, nano(10n)]]))
  })

  test('a list of tasks is filtered by account, doubt and time', async () => {
    const store = await funded()
    const at = store.now()
    const own = await recorded(store, { createdAt: at })
    const [later, others] = [
      await recorded(store, { createdAt: at + 2 }),
      await recorded(store, { accountId: 'acc_b', createdAt: at + 1 }),
    ]
    await put(store, later.id, { in_doubt: true })
    const listed = async (filter: object) =>
      (await listTasks(store.db, { scope: 'every-account', ...filter }, { limit: 9 })).map(({ id }) => id)
    expect(await listed({ scope: { accountId } })).toEqual([later.id, own.id])
    expect(await listed({ inDoubt: true })).toEqual([later.id])
    expect(await listed({ inDoubt: false })).toEqual([others.id, own.id])
    expect(await listed({ from: at + 1, to: at + 2 })).toEqual([others.id])
  })

  test('the typical time of a video is taken from the succeeded tasks of its model', async () => {
    const store = await funded()
    const at = store.now()
    expect(await typicalTaskMs(store.db, 'film')).toBe(120_000)
    const ends = [
      { model: 'film', state: 'succeeded', took: 90 }, // more than the mean would bear
      { model: 'film', state: 'succeeded', took: 10 },
      { model: 'film', state: 'succeeded', took: 20 },
      { model: 'film', state: 'failed', took: 1 },
      { model: 'film', state: 'failed', took: 1 },
      { model: 'other', state: 'succeeded', took: 99 },
      { model: 'other', state: 'succeeded', took: 99 },
    ] as const
    for (const { model, state, took } of ends) {
      const { id } = await recorded(store, { model, createdAt: at })
      await put(store, id, { state, finished_at: at + took })
    }
    expect(await typicalTaskMs(store.db, 'film')).toBe(20)
  })

  test('no more tasks are claimed than the limit allows, also where the database takes the table for tiny', async () => {
    const store = await funded()
    const now = store.now()
    const due = async () => {
      const { id } = await recorded(store)
      await put(store, id, { claim_owner: null, claim_until: null, next_poll_at: now })
    }
    await due()
    // From here on the database plans its queries for a table of one row.
    await sql`analyze task`.execute(store.db.withoutPlugins())
    for (let count = 0; count < 5; count++) await due()
    const claim = { owner: 'node_a', until: now + 60_000 }
    expect(await claimTasks(store, { channel: 'first', limit: 2, now, mode: 'sandbox', claim })).toHaveLength(2)
  })
})
