import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { eachEngine } from '../../../test/support/engines.ts'
import { standingClock } from '../../../test/support/movable-clock.ts'
import { putAccount, putEvent, putEvents } from '../../../test/support/outbox.ts'
import { dueEvents, type Lane, type PassOver } from '../../store/outbox.ts'
import { Gate, gateLimits, type Ending, type Place } from './gate.ts'
import { retryWaitsMs, waitAfter } from './schedule.ts'

function makeGate() {
  const clock = standingClock()
  const gate = new Gate(clock)
  const enter = (host: string, accountId = 'one') => gate.enter({ accountId, host })
  /** Takes every place that the gate gives. */
  const fill = (host: (n: number) => string, accountId = 'one') => {
    const places: Place[] = []
    for (let n = 0; n < 1_000; n++) {
      const place = enter(host(n), accountId)
      if (place !== undefined) places.push(place)
    }
    return places
  }
  const prove = (host: string, accountId = 'one') => enter(host, accountId)?.leave('answered')
  return { clock, gate, enter, fill, prove }
}

describe('places', () => {
  test('a host has ten places, shared by all accounts', () => {
    const { enter, fill, prove } = makeGate()
    for (const account of ['one', 'two']) prove('a', account)
    const places = fill(() => 'a')
    expect(places).toHaveLength(10)
    expect(enter('a', 'two')).toBeUndefined()
    expect(enter('b', 'two')).toBeDefined()
    places[0]?.leave('answered')
    expect(enter('a', 'two')).toBeDefined()
    expect(enter('a', 'two')).toBeUndefined()
  })

  test('hosts that answer share a hundred places', () => {
    const { fill, prove, gate } = makeGate()
    for (let n = 0; n < 200; n++) prove(`h${n}`)
    expect(fill((n) => `h${n % 200}`)).toHaveLength(100)
    expect(gate.passOver()).toBeUndefined()
  })

  test('unproven hosts get a quarter of the places for one account and half for all accounts', () => {
    const { fill, prove, enter, gate } = makeGate()
    for (const host of ['busy', 'good']) prove(host)
    // Deliveries to a host that answers take none of these places.
    expect(fill(() => 'busy')).toHaveLength(10)
    expect(fill((n) => `tarpit${n}`)).toHaveLength(25)
    const proven = ['busy', 'good'].map((host) => ({ accountId: 'one', host }))
    expect(gate.passOver()).toMatchObject({ unproven: ['one'], proven })
    expect(fill((n) => `tarpit${n}`, 'two')).toHaveLength(25)
    expect(fill((n) => `tarpit${n}`, 'three')).toHaveLength(0)
    expect(gate.passOver()?.unproven).toBe('all')
    expect(enter('good')).toBeDefined()
  })

  test('a host that has stopped answering is unproven again', () => {
    const { fill, prove, enter } = makeGate()
    for (let n = 0; n < 40; n++) {
      prove(`turned${n}`)
      enter(`turned${n}`)?.leave('silent')
    }
    expect(fill((n) => `turned${n % 40}`)).toHaveLength(25)
  })
})

describe('a lane', () => {
  test('a lane rests after five silences in a row, and for longer after each silent probe', () => {
    const { clock, enter, fill, gate } = makeGate()
    const first = fill(() => 'a')
    expect(first).toHaveLength(10)
    for (const place of first) place.leave('silent')
    const waits = [30_000, 60_000, 120_000, 240_000, 300_000, 300_000]
    for (const waitMs of waits) {
      expect(enter('a')).toBeUndefined()
      expect(gate.passOver()?.lanes).toEqual([{ accountId: 'one', host: 'a' }])
      clock.advance(waitMs - 1)
      expect(enter('a')).toBeUndefined()
      clock.advance(2)
      expect(gate.passOver()?.lanes).toEqual([])
      const probe = enter('a')
      expect(probe).toBeDefined()
      expect(enter('a')).toBeUndefined()
      probe?.leave('silent')
    }
    clock.advance(300_001)
    enter('a')?.leave('answered')
    expect(fill(() => 'a')).toHaveLength(10)
  })

  test('a lane that rests for one account leaves the same host open to another', () => {
    const { enter } = makeGate()
    for (let n = 0; n < 5; n++) enter('a')?.leave('silent')
    expect(enter('a')).toBeUndefined()
    expect(enter('a', 'two')).toBeDefined()
  })

  test('a lane that answers in between does not rest', () => {
    const { enter } = makeGate()
    for (let n = 0; n < 50; n++) enter('a')?.leave(n % 5 === 4 ? 'answered' : 'silent')
    expect(enter('a')).toBeDefined()
  })

  test('abandoned lanes are not remembered, and at most 2,000 others are', () => {
    const { enter, gate } = makeGate()
    for (let n = 0; n < 5_000; n++) enter(`h${n}`)?.leave('abandoned')
    expect(gate.size).toBe(0)
    for (let n = 0; n < 5_000; n++) enter(`h${n}`)?.leave('silent')
    expect(gate.size).toBe(2_000)
  })
})

test('deliveries in any order never exceed the limits, and leave no place taken', () => {
  const step = fc.record({
    host: fc.integer({ min: 0, max: 30 }),
    account: fc.integer({ min: 0, max: 3 }),
    ending: fc.constantFrom<Ending>('answered', 'silent', 'abandoned'),
    waitMs: fc.integer({ min: 0, max: 60_000 }),
    leaves: fc.integer({ min: 0, max: 3 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const clock = standingClock()
      const gate = new Gate(clock)
      const inside: { lane: Lane; place: Place; ending: Ending }[] = []
      for (const { host, account, ending, waitMs, leaves } of steps) {
        clock.advance(waitMs)
        const lane = { host: `h${host}`, accountId: `a${account}` }
        const place = gate.enter(lane)
        if (place !== undefined) inside.push({ lane, place, ending })
        for (const left of inside.splice(0, leaves === 3 ? 1 : 0)) left.place.leave(left.ending)
        expect(inside.length).toBeLessThanOrEqual(gateLimits.inFlightMax)
        expect(inside.filter((other) => other.lane.host === lane.host).length).toBeLessThanOrEqual(
          gateLimits.perHostMax,
        )
      }
      for (const { place } of inside) place.leave('abandoned')
      // Whatever the gate has learnt, a new host has all its places.
      const places = Array.from({ length: 12 }, () => gate.enter({ host: 'new', accountId: 'new' }))
      expect(places.filter((place) => place !== undefined)).toHaveLength(10)
    }),
    { numRuns: 50 },
  )
})

function scheduleHours(random: () => number): number {
  return retryWaitsMs.reduce((sum, _, n) => sum + (waitAfter(n + 1, random) ?? 0), 0) / 3_600_000
}

test('the retry schedule has growing waits of about a day in all, give or take a fifth', () => {
  expect(scheduleHours(() => 0.5)).toBeWithin(23, 24)
  expect(scheduleHours(() => 0)).toBeWithin(18, 20)
  expect(scheduleHours(() => 0.999_999)).toBeWithin(28, 29)
  expect(waitAfter(retryWaitsMs.length + 1, Math.random)).toBeUndefined()
  expect(retryWaitsMs.every((ms, n) => n === 0 || ms > (retryWaitsMs[n - 1] ?? 0))).toBe(true)
})

eachEngine('due events', (open) => {
  test('events of many lanes that rest do not hide the event of a lane that may be served', async () => {
    const store = await open({ books: 'unchecked' })
    const accountId = await putAccount(store)
    const { gate, enter } = makeGate()
    const hosts = Array.from({ length: 720 }, (_, n) => `h${n}.test`)
    for (const host of hosts) {
      for (let silences = 0; silences < 5; silences++) enter(host, accountId)?.leave('silent')
    }
    const at = store.now() - 1_000
    await putEvents(
      store,
      accountId,
      hosts.map((host) => ({ url: `https://${host}/`, at })),
    )
    const id = await putEvent(store, accountId, { url: 'https://h.test/', at: at + 1 })
    const except = gate.passOver() as PassOver
    const due = await dueEvents(store.db, { mode: 'sandbox', now: store.now(), limit: 200, except })
    expect(due).toEqual([{ id, accountId, host: 'h.test' }])
    const proven = { ...except, unproven: 'all' as const, proven: [{ accountId, host: 'h.test' }] }
    expect(await dueEvents(store.db, { mode: 'sandbox', now: store.now(), limit: 200, except: proven })).toEqual(due)
    const others = { ...proven, proven: [{ accountId: 'other', host: 'h.test' }] }
    expect(await dueEvents(store.db, { mode: 'sandbox', now: store.now(), limit: 200, except: others })).toEqual([])
  })
})
