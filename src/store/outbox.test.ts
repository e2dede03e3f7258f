import { expect, test } from 'bun:test'
import { eachEngine } from '../../test/support/engines.ts'
import { putAccount, putEvent } from '../../test/support/outbox.ts'
import {
  bringForward,
  claimEvents,
  countWaitingEvents,
  dueEvents,
  endAttempt,
  giveUpOverdue,
  hasWaitingEvents,
  releaseClaim,
  releaseClaimsOf,
} from './outbox.ts'
import type { Store } from './open.ts'
import type { Mode } from './schema.ts'

const hour = 60 * 60_000
const url = 'https://customer.example/hook'
const nobody = { hosts: [], lanes: [], unproven: [], proven: [] }

const waiting = async (store: Store, mode: Mode = 'sandbox') =>
  putEvent(store, await putAccount(store, mode), { url, at: store.now() - 30 * hour })
const giveUp = (store: Store, now = store.now()) =>
  giveUpOverdue(store.db, { mode: 'sandbox', now, madeBefore: now - 24 * hour, dueBefore: now - hour })
const stateOf = async (store: Store, id: string) => {
  const row = store.db.selectFrom('webhook_event').select(['state', 'attempts']).where('id', '=', id)
  return row.executeTakeFirstOrThrow()
}

eachEngine('overdue events', (open) => {
  test('overdue events are given up in the given mode only', async () => {
    const store = await open()
    const [own, others] = [await waiting(store), await waiting(store, 'real')]
    expect(await giveUp(store)).toBe(1)
    expect(await stateOf(store, own)).toMatchObject({ state: 'given-up' })
    expect(await hasWaitingEvents(store.db, 'sandbox')).toBe(false)
    expect(await stateOf(store, others)).toMatchObject({ state: 'pending' })
  })

  test('an overdue event that is being sent is not given up, and its delivery counts', async () => {
    const store = await open()
    const id = await waiting(store)
    const now = store.now()
    const [event] = await claimEvents(store, { ids: [id], now, owner: 'node_a', until: now + 60_000 })
    if (event === undefined) throw new Error('it could not be claimed')
    expect(await giveUp(store)).toBe(0)
    const attempt = { at: now, durationMs: 1, status: 200, why: null, excerpt: null }
    await endAttempt(store, event, attempt, { state: 'delivered' })
    expect(await stateOf(store, id)).toEqual({ state: 'delivered', attempts: 1 })
  })

  test('an overdue event is given up once the claim of its sender has run out', async () => {
    const store = await open()
    const id = await waiting(store)
    const now = store.now()
    await claimEvents(store, { ids: [id], now, owner: 'node_a', until: now + 60_000 })
    expect(await giveUp(store, now + 2 * 60_000)).toBe(1)
  })
})

eachEngine('events at a start', (open) => {
  test('at a restart, events claimed by that node are due again, and those of other nodes are not', async () => {
    const store = await open()
    const [own, others] = [await waiting(store), await waiting(store)]
    const now = store.now()
    await claimEvents(store, { ids: [own], now, owner: 'node_a', until: now + 60_000 })
    await claimEvents(store, { ids: [others], now, owner: 'node_b', until: now + 60_000 })
    await releaseClaimsOf(store.db, { owner: 'node_a', now, putOffMsMax: hour })
    const due = await dueEvents(store.db, { mode: 'sandbox', now, limit: 10, except: nobody })
    expect(due.map(({ id }) => id)).toEqual([own])
  })

  test('an event put off beyond the maximum is due at a start, and others keep their time', async () => {
    const store = await open()
    const [far, near, sent] = [await waiting(store), await waiting(store), await waiting(store)]
    const now = store.now()
    const put = (id: string, next_at: number | null) =>
      store.db.updateTable('webhook_event').set({ next_at }).where('id', '=', id).execute()
    await put(far, now + hour + 1)
    await put(near, now + hour)
    await put(sent, null)
    await releaseClaimsOf(store.db, { owner: 'node_a', now, putOffMsMax: hour })
    const due = await dueEvents(store.db, { mode: 'sandbox', now, limit: 10, except: nobody })
    expect(due.map(({ id }) => id)).toEqual([far])
  })
})

eachEngine('attempts and claims of events', (open) => {
  const failed = { at: 1, durationMs: 1, status: 500, why: null, excerpt: null }

  /** Two events that a node is sending. */
  const underWay = async () => {
    const store = await open()
    const ids = [await waiting(store), await waiting(store)]
    const now = store.now()
    const events = await claimEvents(store, { ids, now, owner: 'node_a', until: now + 60_000 })
    const [one, other] = events
    if (one === undefined || other === undefined) throw new Error('they could not be claimed')
    const free = async () => {
      const due = await dueEvents(store.db, { mode: 'sandbox', now: now + 1, limit: 10, except: nobody })
      return due.map(({ id }) => id)
    }
    return { store, one, other, free }
  }

  test('an ended attempt changes only its own event, and a delivered event stays delivered', async () => {
    const { store, one, other, free } = await underWay()
    await endAttempt(store, one, failed, { state: 'pending', nextAt: store.now() + hour })
    expect(await stateOf(store, other.id)).toEqual({ state: 'pending', attempts: 0 })
    expect(await free()).toEqual([])
    await endAttempt(store, one, { ...failed, status: 200 }, { state: 'delivered' })
    expect(await stateOf(store, other.id)).toEqual({ state: 'pending', attempts: 0 })
    // A delivered event stays delivered, whatever a later attempt brings.
    await endAttempt(store, one, { ...failed, status: 410 }, { state: 'gone' })
    expect(await stateOf(store, one.id)).toEqual({ state: 'delivered', attempts: 2 })
  })

  test('a claim is released only by its owner, and only the claim that was meant', async () => {
    const { store, one, other, free } = await underWay()
    await releaseClaim(store.db, { id: one.id, claim: { ...one.claim, owner: 'node_b' } })
    await releaseClaim(store.db, { id: one.id, claim: { ...one.claim, until: one.claim.until - 1 } })
    expect(await free()).toEqual([])
    await releaseClaim(store.db, other)
    expect(await free()).toEqual([other.id])
  })

  test("a failed attempt under another node's claim does not count", async () => {
    const { store, one } = await underWay()
    const late = { ...one, claim: { ...one.claim, owner: 'node_b' } }
    await endAttempt(store, late, failed, { state: 'given-up' })
    expect(await stateOf(store, one.id)).toEqual({ state: 'pending', attempts: 0 })
  })

  test('an event is given up only when it is both old and long due', async () => {
    const store = await open()
    const now = store.now()
    const [old, young] = [await waiting(store), await waiting(store)]
    const change = (id: string, to: object) =>
      store.db.updateTable('webhook_event').set(to).where('id', '=', id).execute()
    await change(old, { next_at: now })
    await change(young, { created_at: now })
    expect(await giveUp(store)).toBe(0)
  })
})

eachEngine('waiting events', (open) => {
  test('events wait in the mode of their account only', async () => {
    const store = await open()
    await waiting(store, 'sandbox')
    expect([await hasWaitingEvents(store.db, 'sandbox'), await hasWaitingEvents(store.db, 'real')]).toEqual([
      true,
      false,
    ])
  })
})

eachEngine('the count of waiting events', (open) => {
  test('waiting events of a mode are counted, with the earliest due time among unclaimed ones', async () => {
    const store = await open()
    const now = store.now()
    const counted = () => countWaitingEvents(store.db, { mode: 'sandbox', now })
    expect(await counted()).toEqual({ count: 0, dueAt: null })
    await waiting(store, 'real')
    const account = await putAccount(store)
    await putEvent(store, account, { url, at: now + hour })
    expect(await counted()).toEqual({ count: 1, dueAt: null })
    const due = await putEvent(store, account, { url, at: now - hour })
    expect(await counted()).toEqual({ count: 2, dueAt: now - hour })
    await claimEvents(store, { ids: [due], now, owner: 'node_a', until: now + 60_000 })
    expect(await counted()).toEqual({ count: 2, dueAt: null })
  })
})

eachEngine('due events', (open, _place, engine) => {
  test('due events come the longest due first, without hosts, lanes and accounts that are passed over', async () => {
    const store = await open()
    const now = store.now()
    const [one, other] = [await putAccount(store), await putAccount(store)]
    const [full, tarpit, quick] = ['full.example', 'tarpit.example', 'quick.example']
    let age = 0
    const put = (account: string, host: string) =>
      putEvent(store, account, { url: `https://${host}/`, at: now - ++age })
    // The first that is put is the last that fell due.
    const oneQuick = await put(one, quick)
    const oneTarpit = await put(one, tarpit)
    const otherTarpit = await put(other, tarpit)
    const otherFull = await put(other, full)
    const oneFull = await put(one, full)
    await putEvent(store, one, { url, at: now + 1 })
    await waiting(store, 'real')
    const due = async (except: object = {}, limit = 9) => {
      const found = await dueEvents(store.db, { mode: 'sandbox', now, limit, except: { ...nobody, ...except } })
      return found.map(({ id }) => id)
    }
    expect(await due()).toEqual([oneFull, otherFull, otherTarpit, oneTarpit, oneQuick])
    expect(await due({}, 2)).toEqual([oneFull, otherFull])
    expect(await due({ hosts: [full] })).toEqual([otherTarpit, oneTarpit, oneQuick])
    expect(await due({ lanes: [{ accountId: one, host: tarpit }] })).toEqual([
      oneFull,
      otherFull,
      otherTarpit,
      oneQuick,
    ])
    const proven = [{ accountId: one, host: quick }]
    expect(await due({ unproven: [one] })).toEqual([otherFull, otherTarpit])
    expect(await due({ unproven: [one], proven })).toEqual([otherFull, otherTarpit, oneQuick])
    expect(await due({ unproven: 'all', proven })).toEqual([oneQuick])
    expect(await due({ unproven: 'all' })).toEqual([])
  })

  test('an event that another node is claiming at this moment is passed over', async () => {
    const store = await open()
    const now = store.now()
    const account = await putAccount(store)
    const [taken, free] = [
      await putEvent(store, account, { url, at: now }),
      await putEvent(store, account, { url, at: now }),
    ]
    await putEvent(store, account, { url, at: now })
    const [claimed, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const claiming = store.transaction(async (tx) => {
      const claim = { claim_owner: 'node_a', claim_until: now + 60_000 }
      await tx.updateTable('webhook_event').set(claim).where('id', '=', taken).execute()
      claimed.resolve()
      await commit.promise
    })
    await claimed.promise
    const others = claimEvents(store, { ids: [taken, free], now, owner: 'node_b', until: now + 60_000 })
    // SQLite has one writer at a time; on PostgreSQL a node does not wait for another.
    if (engine === 'postgres') await others
    commit.resolve()
    await claiming
    expect((await others).map(({ id }) => id)).toEqual([free])
  })

  test('after the clock was set back, coming events that no node is sending are due earlier by as much', async () => {
    const store = await open()
    const now = store.now()
    const account = await putAccount(store)
    const [coming, past, sent] = [
      await putEvent(store, account, { url, at: now + hour }),
      await putEvent(store, account, { url, at: now }),
      await putEvent(store, account, { url, at: now + hour }),
    ]
    const later = now + 2 * hour
    await claimEvents(store, { ids: [sent], now: later, owner: 'node_a', until: later })
    await bringForward(store.db, { now, ms: 60_000 })
    const rows = await store.db.selectFrom('webhook_event').select(['id', 'next_at']).execute()
    expect(Object.fromEntries(rows.map(({ id, next_at: at }) => [id, at]))).toEqual({
      [coming]: now + hour - 60_000,
      [past]: now,
      [sent]: now + hour,
    })
  })
})
