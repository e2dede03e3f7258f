import { describe, expect, test } from 'bun:test'
import { newAttemptId, newId, newOpaqueId } from '../base/ids.ts'
import { nano } from '../base/money.ts'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, attemptOf, fundedAccount, holdOf, requestOf } from '../../test/support/ledger.ts'
import { newTask, put, record, recorded } from '../../test/support/stored-tasks.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { checkLedger } from './check.ts'
import { settleHoldIn, voidHoldIn } from './ledger.ts'
import type { Store } from './open.ts'
import { addEventIn } from './outbox.ts'
import {
  claimTasks,
  dueChannels,
  hasWatchedTasks,
  hintTask,
  nextPollUnlessHinted,
  releaseClaims,
} from './task-claims.ts'
import { heldByTasks, knownUpstreamIds, listTasks, openTaskRefs } from './task-lists.ts'
import { dropOldTasks } from './task-retention.ts'
import type { StoredTaskState } from './task-schema.ts'
import { changeTask, findTask, recordTask, rerouteTask, taskById, taskOnceRecorded } from './tasks.ts'

const open: readonly StoredTaskState[] = ['creating', 'submitted', 'running']

const free = { claim_owner: null, claim_until: null }
const failing = () => Promise.reject(new Error('it cannot be kept'))
const due = (store: Store) => ({ now: store.now(), mode: 'sandbox' as const })
const why = async (store: Store) => (await checkLedger(store)).map(({ rule, why: reason }) => `${rule} ${reason}`)

const claim = (store: Store, owner: string, limit = 100, until = store.now() + 60_000) =>
  claimTasks(store, { channel: 'first', limit, ...due(store), claim: { owner, until } })

eachEngine('the store of tasks', (openStore) => {
  const funded = async (options = {}) => {
    const store = await openStore(options)
    await fundedAccount(store, { amount: 100n })
    return store
  }

  test('a task and its hold are recorded together or not at all', async () => {
    const store = await funded()
    const task = await recorded(store)
    expect(await store.db.selectFrom('hold').select(['kind', 'state']).execute()).toEqual([
      { kind: 'task', state: 'open' },
    ])
    expect(await heldByTasks(store.db, { accountId })).toBe(nano(10n))
    expect(await heldByTasks(store.db, { accountId, keyId: 'key_b' })).toBe(nano(0n))
    expect(await record(store, {}, 91n)).toEqual({ outcome: 'no-funds', available: nano(90n) })
    const twin = { ...newTask(), id: task.id }
    const hold = holdOf(newId('hold'), 10n, { kind: 'task' })
    expect(await thrownBy(recordTask(store, { task: twin, hold, request: requestOf('x') }))).toBeInstanceOf(Error)
    expect(await heldByTasks(store.db, { accountId })).toBe(nano(10n))
  })

  test('a failure of a write in the same commit leaves neither task nor hold', async () => {
    const store = await funded()
    const task = newTask()
    const hold = holdOf(newId('hold'), 10n, { kind: 'task' })
    const request = requestOf('', { id: task.requestId })
    expect(String(await thrownBy(recordTask(store, { task, hold, request, also: failing })))).toContain(
      'it cannot be kept',
    )
    expect(await taskById(store.db, { scope: 'every-account', id: task.id })).toBeUndefined()
    expect(await heldByTasks(store.db, { accountId })).toBe(nano(0n))
  })

  test('a lookup of a task waits for a recording that is about to commit', async () => {
    const store = await funded()
    const task = newTask()
    const commit = Promise.withResolvers<void>()
    const written = Promise.withResolvers<void>()
    const hold = holdOf(newId('hold'), 10n, { kind: 'task' })
    const also = () => {
      written.resolve()
      return commit.promise
    }
    const recording = recordTask(store, { task, hold, request: requestOf('', { id: task.requestId }), also })
    await written.promise
    const asked = taskOnceRecorded(store, task)
    // A query that does not wait would be answered by now.
    await Promise.race([asked, new Promise((resolve) => setTimeout(resolve, 50))])
    commit.resolve()
    await recording
    expect(await asked).toMatchObject({ id: task.id, state: 'creating' })
    expect(await taskOnceRecorded(store, newTask())).toBeUndefined()
  })

  test('exactly one of several concurrent endings of a task succeeds', async () => {
    const store = await funded({ books: 'unchecked' })
    const { id } = await recorded(store)
    const ends = (['succeeded', 'failed', 'cancelled'] as const).flatMap((state) => [state, state, state])
    const won = await Promise.all(ends.map((state) => changeTask(store.db, { id, from: open }, { state })))
    expect(won.filter((task) => task !== undefined)).toHaveLength(1)
    const end = (await taskById(store.db, { scope: 'every-account', id }))?.state
    // Late news of a finished task changes nothing.
    expect(await changeTask(store.db, { id, from: open }, { state: 'running' })).toBeUndefined()
    expect((await taskById(store.db, { scope: 'every-account', id }))?.state).toBe(end as StoredTaskState)
  })

  test('a change by a node that has lost its claim is ignored', async () => {
    const store = await funded()
    const { id } = await recorded(store)
    const from = ['creating'] as const
    expect(await changeTask(store.db, { id, from, owner: 'node_b' }, { sends: 2 })).toBeUndefined()
    expect(await changeTask(store.db, { id, from, owner: 'node_a' }, { sends: 2 })).toMatchObject({ sends: 2 })
    // Nor is an owner heard that claimed the task again and missed a send in between.
    expect(await changeTask(store.db, { id, from, owner: 'node_a', sends: 1 }, { sends: 2 })).toBeUndefined()
    const attemptId = newAttemptId()
    expect(await changeTask(store.db, { id, from, owner: 'node_a', attemptId }, { sends: 3 })).toBeUndefined()
  })

  test('only the owner of an open task can reroute it, and the failed attempt stays on record', async () => {
    const store = await funded()
    const task = await recorded(store)
    const next = { attemptId: newAttemptId(), vendor: 'other', channel: 'second', upstreamModel: 'film-2' }
    const failed = attemptOf('', 0n, { id: task.attemptId, status: 0 })
    expect(await rerouteTask(store, task, { owner: 'node_b', failed, next })).toBe(false)
    // A finished task is not moved, since its video would be bought for nobody.
    await put(store, task.id, { state: 'cancelled' })
    expect(await rerouteTask(store, task, { owner: 'node_a', failed, next })).toBe(false)
    // Nor is one that its owner has sent again, since it would be bought twice.
    await put(store, task.id, { state: 'creating', sends: 2 })
    expect(await rerouteTask(store, task, { owner: 'node_a', failed, next })).toBe(false)
    await put(store, task.id, { sends: 1, lost: 1 })
    expect(await rerouteTask(store, task, { owner: 'node_a', failed, next })).toBe(true)
    // The same move is repeated, as after a lost answer.
    expect(await rerouteTask(store, task, { owner: 'node_a', failed, next })).toBe(true)
    expect(await findTask(store.db, { accountId, id: task.id })).toMatchObject({ ...next, lost: 0 })
    expect(await store.db.selectFrom('attempt').select('id').execute()).toEqual([{ id: task.attemptId }])
  })

  test('a task of a vendor is never assigned to two of our tasks in one channel', async () => {
    const store = await funded()
    const [one, other] = [await recorded(store), await recorded(store)]
    const adopt = (id: string) => changeTask(store.db, { id, from: open }, { state: 'submitted', upstream_id: 'up' })
    await adopt(one.id)
    expect(await thrownBy(adopt(other.id))).toBeInstanceOf(Error)
    const elsewhere = await recorded(store, { channel: 'second' })
    expect(await adopt(elsewhere.id)).toMatchObject({ upstreamId: 'up' })
  })

  describe('finding', () => {
    test('a task is found by either id, and only for its own account', async () => {
      const store = await funded()
      await fundedAccount(store, { id: 'acc_b' })
      const task = await recorded(store)
      await changeTask(store.db, { id: task.id, from: open }, { state: 'submitted', upstream_id: 'up-1' })
      for (const id of [task.id, 'up-1']) {
        expect((await findTask(store.db, { accountId, id }))?.id).toBe(task.id)
        expect(await findTask(store.db, { accountId: 'acc_b', id })).toBeUndefined()
      }
      // PostgreSQL refuses to compare a text with a zero in it.
      for (const id of ['up-2', 'up-1\0']) expect(await findTask(store.db, { accountId, id })).toBeUndefined()
    })

    test('tasks are listed newest first, page by page, without gaps or duplicates', async () => {
      const store = await funded()
      const at = Date.now()
      // Three tasks share each millisecond, so that their ids decide the order.
      for (let i = 0; i < 9; i++) await recorded(store, { createdAt: at + Math.floor(i / 3), model: `m${i % 2}` })
      const filter = { scope: { accountId } } as const
      const all = await listTasks(store.db, filter, { limit: 100 })
      const paged: string[] = []
      for (let before = all[0]; before !== undefined;) {
        paged.push(before.id)
        const [next] = await listTasks(store.db, filter, { limit: 1, before })
        before = next
      }
      expect(paged).toEqual(all.map(({ id }) => id))
      expect(all.map(({ createdAt }) => createdAt)).toEqual(
        all.map(({ createdAt }) => createdAt).toSorted((a, b) => b - a),
      )
      expect(await listTasks(store.db, { ...filter, model: 'm1' }, { limit: 100 })).toHaveLength(4)
      expect(await listTasks(store.db, { ...filter, states: ['running'] }, { limit: 100 })).toEqual([])
      expect(await listTasks(store.db, { ...filter, from: at + 2 }, { limit: 100 })).toHaveLength(3)
      expect(await listTasks(store.db, { scope: 'every-account', mode: 'real' }, { limit: 100 })).toEqual([])
    })
  })

  describe('claims', () => {
    test('each due task is claimed by one node, however many nodes ask at once', async () => {
      const store = await funded()
      const ids: string[] = []
      for (let i = 0; i < 10; i++) {
        const { id } = await recorded(store)
        await put(store, id, { ...free, next_poll_at: store.now() - 10 + i })
        ids.push(id)
      }
      expect(await dueChannels(store.db, due(store))).toEqual([{ channel: 'first', rows: 10 }])
      const claimed = await Promise.all(['a', 'b', 'c'].map((owner) => claim(store, owner, 4)))
      const taken = claimed.flat().map(({ id }) => id)
      expect(new Set(taken).size).toBe(taken.length)
      const rest = await claim(store, 'd')
      expect([...taken, ...rest.map(({ id }) => id)].toSorted()).toEqual(ids.toSorted())
      expect(await claim(store, 'e')).toEqual([])
    })

    test('a claim expires, and is released at the next start of its node', async () => {
      const store = await funded()
      const { id } = await recorded(store)
      await put(store, id, { ...free, next_poll_at: store.now() })
      expect(await claim(store, 'a', 1, store.now())).toHaveLength(1)
      expect(await claim(store, 'b', 1)).toHaveLength(1)
      expect(await claim(store, 'c', 1)).toEqual([])
      await releaseClaims(store.db, 'a', store.now())
      expect(await claim(store, 'c', 1)).toEqual([])
      await releaseClaims(store.db, 'b', store.now())
      expect(await claim(store, 'c', 1)).toHaveLength(1)
    })

    test('tasks of another mode are neither due nor watched', async () => {
      const store = await funded()
      const { id } = await recorded(store)
      await put(store, id, { ...free, next_poll_at: store.now() })
      expect(await dueChannels(store.db, { now: store.now(), mode: 'real' })).toEqual([])
      expect([await hasWatchedTasks(store.db, 'sandbox'), await hasWatchedTasks(store.db, 'real')]).toEqual([
        true,
        false,
      ])
    })

    test('a hint makes a task due, also while a node is polling it', async () => {
      const store = await funded()
      const { id } = await recorded(store)
      const later = store.now() + 60_000
      await put(store, id, { ...free, state: 'submitted', next_poll_at: later })
      expect(await hintTask(store.db, id, store.now())).toBe(true)
      const [task] = await claim(store, 'a')
      if (task === undefined) throw new Error('it is not due')
      const again = () => changeTask(store.db, { id, from: open }, { next_poll_at: nextPollUnlessHinted(task, later) })
      expect((await again())?.nextPollAt).toBe(later)
      await put(store, id, { next_poll_at: task.nextPollAt })
      expect(await hintTask(store.db, id, store.now() + 5)).toBe(true)
      expect((await again())?.nextPollAt).toBeLessThan(later)
      await put(store, id, { state: 'failed' })
      expect(await hintTask(store.db, id, store.now() + 9)).toBe(false)
      await put(store, id, { state: 'submitted' })
    })
  })

  test('upstream ids are selected by when their task was sent, not by when it was made', async () => {
    const store = await funded()
    const now = store.now()
    const [early, resent] = [await recorded(store), await recorded(store)]
    for (const { id } of [early, resent]) {
      await put(store, id, { upstream_id: `up-${id}`, created_at: now - 3_600_000, sent_at: now - 3_600_000 })
    }
    await put(store, resent.id, { sent_at: now })
    const known = await knownUpstreamIds(store.db, { channel: 'first', sentSince: now - 60_000 })
    expect([...known]).toEqual([`up-${resent.id}`])
  })

  test('an old task is deleted although others have events to deliver, and not one that ended lately', async () => {
    const store = await funded({ books: 'unchecked' })
    const [old, late, untold] = [await recorded(store), await recorded(store), await recorded(store)]
    const ended = { state: 'failed', created_at: 1, finished_at: 2, next_poll_at: null } as const
    for (const { id } of [old, late, untold]) await put(store, id, ended)
    await put(store, late.id, { finished_at: 10 })
    const event = {
      id: newOpaqueId('evt'),
      accountId,
      taskId: untold.id,
      url: 'https://customer.example/',
      payload: '{}',
    }
    await store.transaction((tx) => addEventIn(tx, event, store.now()))
    expect(await dropOldTasks(store, { endedBefore: 10, mode: 'sandbox', limit: 9 })).toBe(1)
    const left = await store.db.selectFrom('task').select('id').execute()
    expect(left.map(({ id }) => id).toSorted()).toEqual([late.id, untold.id].toSorted())
  })

  test('a reference belongs to a task until the task ends', async () => {
    const store = await funded({ books: 'unchecked' })
    const task = await recorded(store)
    await recorded(store)
    for (const state of open) {
      await put(store, task.id, { state })
      expect(await openTaskRefs(store.db, [task.attemptId, 'att_other'])).toEqual(new Set([task.attemptId]))
    }
    await put(store, task.id, { state: 'failed' })
    expect(await openTaskRefs(store.db, [task.attemptId])).toEqual(new Set())
  })

  describe('I7', () => {
    test('I7 holds for running tasks and for every kind of ending', async () => {
      const store = await funded()
      for (const state of ['submitted', 'succeeded', 'failed', 'cancelled', 'refused'] as const) {
        const task = await recorded(store, { webhookUrl: 'https://customer.example/' })
        const { id, holdId, requestId } = task
        await store.transaction(async (tx) => {
          await changeTask(tx, { id, from: open }, { state })
          if (state === 'submitted') return
          const hold = { id: holdId, accountId }
          const request = requestOf('', { id: requestId })
          if (state === 'succeeded') {
            const sale = { price: nano(3n), basis: 'vendor', usage: null, attempts: [] } as const
            await settleHoldIn(tx, { hold, request, ...sale }, store.now())
          } else await voidHoldIn(tx, { hold, request }, store.now())
          if (state === 'refused') return
          const event = {
            id: newOpaqueId('evt'),
            accountId,
            taskId: id,
            url: 'https://customer.example/',
            payload: '{}',
          }
          await addEventIn(tx, event, store.now())
        })
      }
      expect(await why(store)).toEqual([])
    })

    test('I7 reports an ending without its money, money without its ending, and missing events', async () => {
      const store = await funded({ books: 'unchecked' })
      const ended = await recorded(store)
      await put(store, ended.id, { state: 'succeeded' })
      const released = await recorded(store)
      await store.transaction((tx) => voidHoldIn(tx, { hold: { id: released.holdId, accountId } }, store.now()))
      expect((await why(store)).toSorted()).toEqual([
        'I7 creating, and its hold is void',
        'I7 succeeded, and its hold is open',
      ])
      await put(store, released.id, { state: 'failed', webhook_url: 'https://customer.example/' })
      expect(await why(store)).toContain('I7 failed, with 0 events')
    })

    test('I7 reports an open hold for a task that does not exist', async () => {
      const store = await funded({ books: 'unchecked' })
      const hold = holdOf(newId('hold'), 5n, { kind: 'task' })
      await store.transaction(async (tx) => {
        await tx
          .insertInto('hold')
          .values({
            id: hold.id,
            account_id: accountId,
            key_id: 'k',
            kind: 'task',
            amount: nano(5n),
            price_version: 'v',
            deadline: hold.deadline,
            state: 'open',
            node: 'n',
            created_at: 0,
            ended_at: null,
          })
          .execute()
        await tx
          .updateTable('account')
          .set({ held: nano(5n) })
          .where('id', '=', accountId)
          .execute()
      })
      expect(await why(store)).toEqual(['I7 an open hold for a task that does not exist'])
    })
  })
})
