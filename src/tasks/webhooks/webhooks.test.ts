import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { eachEngine } from '../../../test/support/engines.ts'
import { flakyStore } from '../../../test/support/flaky-store.ts'
import { until } from '../../../test/support/gateway.ts'
import { handTimers } from '../../../test/support/hand-timers.ts'
import { movableClock } from '../../../test/support/movable-clock.ts'
import { putAccount, putEvent, putEvents } from '../../../test/support/outbox.ts'
import { startReceiver, type Received, type Receiver } from '../../../test/support/receiver.ts'
import { makeLog, silentLog } from '../../base/log.ts'
import { listAudit } from '../../store/audit.ts'
import type { Store } from '../../store/open.ts'
import { attemptsOfEvents, eventById, resendEvent } from '../../store/webhooks.ts'
import { gateLimits } from './gate.ts'
import { retryWaitsMs } from './schedule.ts'
import { openWebhooks, type WebhookParts, type Webhooks } from './webhooks.ts'

setDefaultTimeout(120_000)

const secret = Buffer.from('an installation secret of enough bytes')
const minuteMs = 60_000
const hourMs = 60 * minuteMs

function resolveSome(name: string): Promise<string[]> {
  return name === 'unknown.test' ? Promise.reject(new Error('ENOTFOUND')) : Promise.resolve(['127.0.0.1'])
}

eachEngine('webhooks', (open) => {
  let clock: ReturnType<typeof movableClock>
  let store: Store
  let receiver: Receiver
  let accountId: string
  let opened: Webhooks[]

  beforeEach(async () => {
    clock = movableClock()
    store = await open({ clock })
    receiver = await startReceiver()
    accountId = await putAccount(store)
    opened = []
  })
  afterEach(async () => {
    receiver.close()
    for (const each of opened) await each.close({ withinMs: 0 })
  })

  function start(more: Partial<WebhookParts> = {}): Webhooks {
    const outside = { resolve: () => Promise.resolve(['127.0.0.1']) }
    const settings = { allowPrivate: false }
    // `random` gives the middle of the jitter, so that waits are as in the schedule.
    const made = openWebhooks({
      store,
      mode: 'sandbox',
      node: `node${opened.length}`,
      secret,
      settings,
      clock,
      log: silentLog,
      outside,
      random: () => 0.5,
      ...more,
    })
    opened.push(made)
    return made
  }

  const put = (url = receiver.url()) => putEvent(store, accountId, { url })
  const stateOf = async (id: string) => (await eventById(store.db, id))?.state
  const attempts = async (id: string) => (await attemptsOfEvents(store.db, [id])).get(id) ?? []
  const recorded = (id: string, count: number) => until(async () => (await attempts(id)).length === count)
  const last = () => receiver.received.at(-1) as Received
  const verify = (with_: string, { headers, body } = last()) =>
    new Webhook(with_).verify(body, headers as Record<string, string>)

  test('an event is delivered once, as it was written, and signed', async () => {
    const webhooks = start()
    const key = (await webhooks.secrets.replace(accountId, 'test')) ?? ''
    const id = await put()
    webhooks.wake()
    await until(async () => (await stateOf(id)) === 'delivered')
    const event = await eventById(store.db, id)
    expect(receiver.received).toHaveLength(1)
    expect(last()).toMatchObject({ path: '/hook', body: event?.payload ?? '' })
    expect(last().headers).toMatchObject({ 'webhook-id': id, 'content-type': 'application/json' })
    expect(last().headers['webhook-signature']).toMatch(/^v1,[\w+/]{43}=$/)
    expect(verify(key)).toEqual(JSON.parse(event?.payload ?? ''))
    expect(await attempts(id)).toEqual([
      { at: expect.any(Number), durationMs: expect.any(Number), status: 204, why: null, excerpt: null },
    ])
    expect(event).toMatchObject({ attempts: 1, nextAt: null })
  })

  test('due events are looked for less often while none is pending, and at once after a wake', async () => {
    const timers = handTimers()
    const webhooks = start({ timers })
    const rested = () => until(() => timers.waiting.length === 1)
    timers.fire()
    await rested()
    expect(timers.waiting).toEqual([2_000])
    timers.fire()
    await rested()
    expect(timers.waiting).toEqual([2_000])
    receiver.reply({ status: 500 })
    const id = await put()
    webhooks.wake()
    await recorded(id, 1)
    await rested()
    timers.fire()
    await rested()
    expect(timers.waiting).toEqual([1_000])
  })

  test('a failed delivery is retried on schedule with the same id and bytes, and then given up', async () => {
    receiver.reply({ status: 500, body: 'no\u0000 such\ttable whsec_abcdefgh0123' })
    const id = await put()
    start().wake()
    for (const [at, waitMs] of retryWaitsMs.entries()) {
      await recorded(id, at + 1)
      const event = await eventById(store.db, id)
      expect(event).toMatchObject({ state: 'pending', attempts: at + 1 })
      const leftMs = (event?.nextAt ?? 0) - clock.now()
      expect(leftMs).toBeWithin(waitMs - 5_000, waitMs + 1)
      clock.advance(leftMs - 1_000)
      expect(receiver.received).toHaveLength(at + 1)
      clock.advance(1_001)
      opened[0]?.wake()
    }
    await until(async () => (await stateOf(id)) === 'given-up')
    expect(receiver.received).toHaveLength(10)
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([id]))
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
    // Each attempt is signed for its own time.
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(10)
    const kept = await attempts(id)
    expect(kept).toHaveLength(10)
    expect(kept[0]).toMatchObject({ status: 500, why: null, excerpt: 'no such table [redacted]' })
    clock.advance(48 * hourMs)
    opened[0]?.wake()
    expect(await stateOf(id)).toBe('given-up')
  })

  test.each([
    { name: 'while the database is there', isAway: false },
    { name: 'while the database is away', isAway: true },
  ])('a clock that is set back $name delays no further attempt', async ({ isAway }) => {
    receiver.reply({ status: 500 })
    const id = await put()
    const database = flakyStore(store)
    const complaints: string[] = []
    const log = makeLog({ level: 'warn', write: (line) => complaints.push(line) })
    const webhooks = start({ store: database.store, log })
    webhooks.wake()
    await recorded(id, 1)
    database.isAway = isAway
    clock.setBack(hourMs)
    clock.advance(retryWaitsMs[0])
    webhooks.wake()
    if (isAway) await until(() => complaints.some((line) => line.includes('due webhooks cannot be read')))
    database.isAway = false
    webhooks.wake()
    await recorded(id, 2)
  })

  test.each([
    { reply: 200, state: 'delivered' },
    { reply: 299, state: 'delivered' },
    { reply: 410, state: 'gone' },
    { reply: 302, state: 'pending' },
    { reply: 400, state: 'pending' },
    { reply: 429, state: 'pending' },
    { reply: 503, state: 'pending' },
  ])('a reply of $reply leaves the event $state', async ({ reply, state }) => {
    // A redirect is an answer like any other, and is not followed.
    receiver.reply({ status: reply, location: receiver.url('elsewhere.test', '/elsewhere') })
    const id = await put()
    start().wake()
    await recorded(id, 1)
    expect(await stateOf(id)).toBe(state as never)
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook'])
  })

  test('a failed attempt records whether it was unreachable, unresolved or too slow', async () => {
    const outside = { resolve: resolveSome }
    const closed = await put('http://127.0.0.1:1/')
    const unknown = await put('http://unknown.test/')
    const patient = start({ outside })
    patient.wake()
    for (const id of [closed, unknown]) await recorded(id, 1)
    expect(await attempts(closed)).toMatchObject([{ status: 0, why: 'unreachable' }])
    expect(await attempts(unknown)).toMatchObject([{ status: 0, why: 'unresolved' }])
    await patient.close({ withinMs: 0 })

    receiver.reply('silence')
    const slow = await put()
    start({ attemptLimits: { bytesMax: 1024, connectMs: 10_000, totalMs: 1_000 }, outside }).wake()
    await recorded(slow, 1)
    expect(await attempts(slow)).toMatchObject([{ status: 0, why: 'too-slow' }])
  })

  describe('a secret', () => {
    test('a replaced secret signs beside the new one for a day, and no longer', async () => {
      const webhooks = start()
      const first = (await webhooks.secrets.replace(accountId, 'test')) ?? ''
      const second = (await webhooks.secrets.replace(accountId, 'test')) ?? ''
      expect(first).toMatch(/^whsec_[\w+/]{43}=$/)
      await put()
      webhooks.wake()
      await until(() => receiver.received.length === 1)
      for (const each of [first, second]) expect(verify(each)).toBeDefined()
      clock.advance(24 * hourMs + 1_000)
      expect(await webhooks.secrets.valid(accountId)).toEqual([second])
      // Not verified here: the receiver's clock cannot be moved, and a signature from a day ahead is too new for it.
      const id = await put()
      webhooks.wake()
      await recorded(id, 1)
      expect(String(last().headers['webhook-signature']).split(' ')).toHaveLength(1)
    })

    test('a secret is stored sealed, for its own account alone, and made when there is none', async () => {
      const webhooks = start()
      const shown = (await webhooks.secrets.replace(accountId, 'test')) ?? ''
      const { sealed } = await store.db.selectFrom('webhook_secret').select('sealed').executeTakeFirstOrThrow()
      const raw = shown.slice('whsec_'.length)
      for (const text of [raw, Buffer.from(raw, 'base64').toString('hex')]) {
        expect(sealed).not.toContain(text)
        expect(Buffer.from(sealed, 'base64').toString('latin1')).not.toContain(text)
      }
      const other = await putAccount(store)
      const made = await Promise.all([webhooks.secrets.valid(other), webhooks.secrets.valid(other)])
      expect(made[0]).toHaveLength(1)
      expect(made[1]).toEqual(made[0] ?? [])
      await store.db.updateTable('webhook_secret').set({ sealed }).where('account_id', '=', other).execute()
      expect(await webhooks.secrets.valid(other)).toEqual([])
      expect(await webhooks.secrets.replace('acc_none', 'test')).toBeUndefined()
      const audited = (await listAudit(store.db, { limit: 10 })).map(({ action, subject }) => `${action} ${subject}`)
      expect(audited).toContain(`webhook-secret.replace ${accountId}`)
      expect(audited).toContain(`webhook-secret.create ${other}`)
    })

    test('a secret that can no longer be read sends nothing, and the attempt says unsigned', async () => {
      await start().secrets.replace(accountId, 'test')
      await opened.pop()?.close({ withinMs: 0 })
      const id = await put()
      start({ secret: Buffer.from('another secret of enough bytes, later') }).wake()
      await recorded(id, 1)
      expect((await attempts(id))[0]).toMatchObject({ status: 0, why: 'unsigned' })
      expect(receiver.received).toEqual([])
    })

    test('the last five of many secrets made in a day stay valid', async () => {
      const { secrets } = start()
      const made: string[] = []
      for (let i = 0; i < 7; i++) made.unshift((await secrets.replace(accountId, 'test')) ?? '')
      expect(await secrets.valid(accountId)).toEqual(made.slice(0, 5))
    })
  })

  describe('an event that is sent again by hand', () => {
    test.each([
      { was: 'delivered', reply: 204 },
      { was: 'gone', reply: 410 },
    ])('an event that was $was arrives again under its id, and its history stays', async ({ was, reply }) => {
      receiver.reply(reply)
      const id = await put()
      const webhooks = start()
      webhooks.wake()
      await until(async () => (await stateOf(id)) === was)
      receiver.reply(200)
      expect(await resendEvent(store, { id, actor: 'test' })).toMatchObject({ id, state: 'pending', attempts: 0 })
      webhooks.wake()
      await until(async () => (await stateOf(id)) === 'delivered')
      await recorded(id, 2)
      const [one, two] = receiver.received
      expect(two?.headers['webhook-id']).toBe(id)
      expect(two?.body).toBe(one?.body ?? '')
      expect(await listAudit(store.db, { limit: 1 })).toMatchObject([
        { action: 'webhook.resend', subject: id, detail: { account: accountId, was } },
      ])
    })

    test('a failure of the earlier attempt does not count after the event is delivered', async () => {
      receiver.reply('silence')
      const id = await put()
      const webhooks = start()
      webhooks.wake()
      await until(() => receiver.received.length === 1)
      receiver.reply(200)
      await resendEvent(store, { id, actor: 'test' })
      webhooks.wake()
      await until(async () => (await stateOf(id)) === 'delivered')
      receiver.release(500)
      await recorded(id, 2)
      expect(await eventById(store.db, id)).toMatchObject({ state: 'delivered', nextAt: null })
    })

    test('an unknown event is not sent', async () => {
      expect(await resendEvent(store, { id: 'evt_none', actor: 'test' })).toBeUndefined()
    })
  })

  describe('several nodes', () => {
    test('each event is delivered by one node', async () => {
      const nodes = [start(), start(), start()]
      // Made beforehand, so that this test is only about claims.
      await nodes[0]?.secrets.replace(accountId, 'test')
      const ids = await putEvents(
        store,
        accountId,
        Array.from({ length: 60 }, (_, n) => ({ url: receiver.url(`h${n % 6}.test`) })),
      )
      for (const node of nodes) node.wake()
      await until(async () => {
        const left = await store.db.selectFrom('webhook_event').select('id').where('state', '=', 'pending').execute()
        return left.length === 0
      })
      const seen = receiver.received.map(({ headers }) => String(headers['webhook-id']))
      expect(seen.toSorted()).toEqual(ids.toSorted())
    })

    test('the claim of a dead node runs out, and another node delivers the same event', async () => {
      receiver.reply('silence')
      const id = await put()
      // This node sends but records nothing, as if it died in between.
      let isDead = false
      const dying: Store = {
        ...store,
        transaction: (work) => (isDead ? new Promise<never>(() => {}) : store.transaction(work)),
      }
      start({ store: dying }).wake()
      await until(() => receiver.received.length === 1)
      isDead = true
      opened = []
      receiver.reply(204)
      const second = start({ node: 'another' })
      const later = await put(receiver.url('later.test'))
      second.wake()
      await until(async () => (await stateOf(later)) === 'delivered')
      expect(receiver.received.filter(({ headers }) => headers['webhook-id'] === id)).toHaveLength(1)
      clock.advance(61_000)
      second.wake()
      await until(async () => (await stateOf(id)) === 'delivered')
      const seen = receiver.received.filter(({ headers }) => headers['webhook-id'] === id)
      expect(seen).toHaveLength(2)
      expect(seen[1]?.body).toBe(seen[0]?.body ?? '')
      receiver.release()
    })

    test('a node that closes lets a delivery finish in time, or gives it back at once', async () => {
      receiver.reply('silence')
      const id = await put()
      const first = start()
      first.wake()
      await until(() => receiver.received.length === 1)
      await first.close({ withinMs: 10 })
      expect(await attempts(id)).toEqual([])
      const second = start()
      await until(() => receiver.received.length === 2)
      const closed = second.close({ withinMs: 10_000 })
      receiver.release()
      await closed
      expect(await stateOf(id)).toBe('delivered')
    })

    test('a node of another mode leaves the event alone', async () => {
      const id = await put()
      const real = start({ mode: 'real', settings: { allowPrivate: true } })
      const own = await putEvent(store, await putAccount(store, 'real'), { url: receiver.url() })
      real.wake()
      await until(async () => (await stateOf(own)) === 'delivered')
      expect(await stateOf(id)).toBe('pending')
      expect(await attempts(id)).toEqual([])
    })
  })

  test('an event for an unproven host is delivered once a place is free again', async () => {
    receiver.reply('silence')
    const webhooks = start({ gateLimits: { ...gateLimits, unprovenMax: 1 } })
    const ids = [await put(receiver.url('one.test')), await put(receiver.url('two.test'))]
    webhooks.wake()
    await until(() => receiver.received.length === 1)
    webhooks.wake()
    receiver.reply(204)
    receiver.release()
    for (const id of ids) await until(async () => (await stateOf(id)) === 'delivered')
  })

  test('an event that waits behind a dead host beyond its schedule is given up without an attempt', async () => {
    const events = Array.from({ length: 30 }, () => ({ url: 'http://127.0.0.1:1/' }))
    const ids = await putEvents(store, accountId, events)
    const webhooks = start()
    webhooks.wake()
    await until(async () => (await attemptsOfEvents(store.db, ids)).values().some((some) => some.length > 0))
    clock.advance(25 * hourMs)
    const alive = await put()
    webhooks.wake()
    await until(async () => (await stateOf(alive)) === 'delivered')
    await until(async () => (await stateOf(ids[29] ?? '')) === 'given-up')
    expect(await attempts(ids[29] ?? '')).toEqual([])
  })
})
