import { describe, expect, test } from 'bun:test'
import { standingClock } from '../../test/support/movable-clock.ts'
import { compatible } from '../vendors/compatible/compatible.ts'
import { makeChannels, type Channel } from './channels.ts'

const vendor = compatible({ id: 'v', baseUrl: 'https://v' })
const other = compatible({ id: 'w', baseUrl: 'https://w' })
const channel = (id: string, more: Partial<Channel> = {}): Channel => ({
  id,
  vendor,
  baseUrl: 'https://v',
  credentials: ['key'],
  weight: 1,
  priority: 0,
  ...more,
})
const offers = [{ vendor: 'v', upstreamModel: 'm' }]

/** Predictable random numbers: these, one after another, for ever. */
function always(...numbers: readonly number[]): () => number {
  let at = 0
  return () => numbers[at++ % numbers.length] ?? 0
}

function open(all: readonly Channel[], random = always(0)) {
  const clock = standingClock()
  const channels = makeChannels(all, clock, random)
  const ids = () => [...channels.routes(offers)].map((route) => route.channel.id)
  return { clock, channels, ids }
}

describe('the order of routes', () => {
  test('routes are ordered by priority first', () => {
    const all = [channel('c', { priority: 2 }), channel('a', { priority: 0 }), channel('b', { priority: 1 })]
    expect(open(all).ids()).toEqual(['a', 'b', 'c'])
  })

  test('routes of equal priority are ordered by weight, with each channel once', () => {
    const all = [channel('light', { weight: 1 }), channel('heavy', { weight: 9 })]
    expect(open(all, always(0.05)).ids()).toEqual(['light', 'heavy'])
    expect(open(all, always(0.5)).ids()).toEqual(['heavy', 'light'])
    expect(open(all, always(0.999)).ids()).toEqual(['heavy', 'light'])
  })

  test('routes follow the weights over many requests', () => {
    const all = [channel('light', { weight: 1 }), channel('heavy', { weight: 3 })]
    const { ids } = open(all, always(...Array.from({ length: 200 }, (_, index) => index / 200)))
    let heavy = 0
    for (let turn = 0; turn < 200; turn++) if (ids()[0] === 'heavy') heavy++
    expect(heavy).toBeWithin(130, 171)
  })

  test('a channel of weight zero comes last', () => {
    const all = [channel('never', { weight: 0 }), channel('usual')]
    for (const chance of [0, 0.3, 0.999]) expect(open(all, always(chance)).ids()).toEqual(['usual', 'never'])
    expect(open([channel('only', { weight: 0 })]).ids()).toEqual(['only'])
  })

  test('a channel that keeps failing for a model comes last for that model until it answers', () => {
    const [a, b] = [channel('a'), channel('b', { priority: 1 })]
    const { channels, clock, ids } = open([a, b])
    const had = { channel: a, upstreamModel: 'm' }
    const failedIn = (...requests: readonly string[]) => requests.map((request) => channels.failed(had, request))
    expect(failedIn('1', '2')).toEqual([false, false])
    channels.answered(had)
    expect(failedIn('3', '4', '3', '4', '5', '5', '6')).toEqual([false, false, false, false, true, false, false])
    expect(ids()).toEqual(['b', 'a'])
    expect([...channels.routes([{ vendor: 'v', upstreamModel: 'n' }])].map((route) => route.channel.id)).toEqual([
      'a',
      'b',
    ])
    for (const request of ['1', '2', '3']) channels.failed({ channel: b, upstreamModel: 'm' }, request)
    expect(ids()).toEqual(['a', 'b'])
    channels.answered({ channel: b, upstreamModel: 'm' })
    expect(ids()).toEqual(['b', 'a'])
    // The first request after its time is over finds out whether it still fails, and no other does.
    clock.advance(60_000)
    expect(ids()).toEqual(['a', 'b'])
    channels.asking(had, 600_000)
    expect(ids()).toEqual(['b', 'a'])
    clock.advance(599_999)
    expect(ids()).toEqual(['b', 'a'])
    channels.answered(had)
    expect(ids()).toEqual(['a', 'b'])
  })

  test('a failing channel is tried by one request at a time, the next a minute after it ended open', () => {
    const [a, b] = [channel('a'), channel('b', { priority: 1 })]
    const { channels, clock, ids } = open([a, b])
    const had = { channel: a, upstreamModel: 'm' }
    for (const request of ['1', '2', '3']) channels.failed(had, request)
    clock.advance(60_000)
    channels.asking(had, 600_000)
    clock.advance(60_000)
    channels.leftOpen(had)
    expect(ids()).toEqual(['b', 'a'])
    clock.advance(60_000)
    expect(ids()).toEqual(['a', 'b'])
    // A first failure is no reason yet to ask another channel first.
    channels.answered(had)
    channels.failed(had, '4')
    channels.asking(had, 600_000)
    channels.leftOpen(had)
    expect(ids()).toEqual(['a', 'b'])
  })

  test('a simulator keeps its place however often it fails', () => {
    const a = channel('a', { isSimulator: true })
    const { channels, ids } = open([a, channel('b', { priority: 1 })])
    for (const request of ['1', '2', '3', '4']) {
      expect(channels.failed({ channel: a, upstreamModel: 'm' }, request)).toBe(false)
    }
    expect(ids()).toEqual(['a', 'b'])
  })

  test('a route has the upstream model of its offer, and channels without an offer are left out', () => {
    const all = [channel('a'), channel('b', { vendor: other })]
    const { channels } = open(all)
    const named = [
      ...channels.routes([
        { vendor: 'v', upstreamModel: 'theirs' },
        { channel: 'b', upstreamModel: 'special' },
      ]),
    ]
    expect(named.map((route) => [route.channel.id, route.upstreamModel])).toEqual([
      ['a', 'theirs'],
      ['b', 'special'],
    ])
    expect([...channels.routes([{ vendor: 'nobody', upstreamModel: 'x' }])]).toEqual([])
  })
})

describe('credentials', () => {
  test('the credentials of a channel are used in turn', () => {
    const { channels } = open([channel('a', { credentials: ['one', 'two', 'three'] })])
    const used = Array.from({ length: 6 }, () => [...channels.routes(offers)][0]?.credential)
    expect(new Set(used.slice(0, 3))).toEqual(new Set(['one', 'two', 'three']))
    expect(used.slice(3)).toEqual(used.slice(0, 3))
  })

  test('credentials are used in turn for each model, also with other models in between', () => {
    const { channels } = open([channel('a', { credentials: ['one', 'two'] }), channel('b', { vendor: other })])
    const used = Array.from({ length: 4 }, () => {
      const [route] = channels.routes(offers)
      Array.from(channels.routes([{ vendor: 'w', upstreamModel: 'n' }]))
      return route?.credential
    })
    expect(new Set(used)).toEqual(new Set(['one', 'two']))
  })

  test('resting credentials are left out until their rest is over', () => {
    const a = channel('a', { credentials: ['one', 'two'] })
    const { channels, clock } = open([a])
    channels.rest({ channel: a, credential: 'one' }, 5)
    expect(channels.isResting({ channel: a, credential: 'one' })).toBe(true)
    for (let turn = 0; turn < 4; turn++) expect([...channels.routes(offers)][0]?.credential).toBe('two')
    channels.rest({ channel: a, credential: 'two' }, 5)
    expect([...channels.routes(offers)]).toEqual([])
    clock.advance(5_001)
    expect([...channels.routes(offers)]).toHaveLength(1)
  })

  test('a rest is not shortened by a later, shorter one', () => {
    const a = channel('a')
    const { channels, clock } = open([a])
    expect(channels.rest({ channel: a, credential: 'key' }, 60)).toBe(true)
    expect(channels.rest({ channel: a, credential: 'key' }, 1)).toBe(false)
    clock.advance(59_999)
    expect(channels.isResting({ channel: a, credential: 'key' })).toBe(true)
  })

  test('a credential over its rate for one model still serves the others', () => {
    const a = channel('a')
    const { channels, clock, ids } = open([a])
    const routesFor = (upstreamModel: string) => [...channels.routes([{ vendor: 'v', upstreamModel }])].length
    expect(channels.rest({ channel: a, credential: 'key', upstreamModel: 'm' }, 30)).toBe(true)
    expect(channels.rest({ channel: a, credential: 'key', upstreamModel: 'm' }, 30)).toBe(false)
    expect([routesFor('m'), routesFor('n')]).toEqual([0, 1])
    expect(channels.isResting({ channel: a, credential: 'key' })).toBe(false)
    // A refused credential rests for all models.
    expect(channels.rest({ channel: a, credential: 'key' }, 10)).toBe(true)
    expect(routesFor('n')).toBe(0)
    clock.advance(10_001)
    expect([routesFor('m'), routesFor('n')]).toEqual([0, 1])
    clock.advance(20_000)
    expect(ids()).toEqual(['a'])
  })

  test('a credential that rests in one channel is still used in another', () => {
    const a = channel('a')
    const b = channel('b')
    const { channels, ids } = open([a, b])
    channels.rest({ channel: a, credential: 'key' }, 60)
    expect(ids()).toEqual(['b'])
  })

  test('the wait is known when credentials rest only for being over their rate for the model', () => {
    const a = channel('a', { credentials: ['one', 'two'] })
    const { channels, clock } = open([a])
    const places = channels.places(offers)
    expect(channels.secondsOverRate(places)).toBeUndefined()
    channels.rest({ channel: a, credential: 'one' }, 60)
    expect(channels.secondsOverRate(places)).toBeUndefined()
    channels.rest({ channel: a, credential: 'one', upstreamModel: 'm' }, 30)
    channels.rest({ channel: a, credential: 'two', upstreamModel: 'm' }, 40)
    channels.rest({ channel: a, credential: 'two', upstreamModel: 'other' }, 5)
    expect(channels.secondsOverRate(places)).toBe(40)
    clock.advance(39_000)
    expect(channels.secondsOverRate(places)).toBe(1)
    clock.advance(1_000)
    expect(channels.secondsOverRate(places)).toBeUndefined()
  })

  test('a credential never rests longer than a minute', () => {
    const a = channel('a')
    const { channels, clock, ids } = open([a])
    channels.rest({ channel: a, credential: 'key' }, 86_400)
    clock.advance(60_001)
    expect(ids()).toEqual(['a'])
  })

  test('after a credential goes to rest, the others of its channel come after the other channels', () => {
    const a = channel('a', { credentials: ['one', 'two', 'three'] })
    const b = channel('b', { priority: 1 })
    const { channels } = open([a, b])
    const used: string[] = []
    for (const route of channels.routes(offers)) {
      used.push(`${route.channel.id} ${route.credential}`)
      // The first credential of `a` is over its rate, the second is refused; the third works, so `a` ends there.
      if (used.length === 1) channels.rest(route, 60)
      if (used.length === 3) channels.rest({ channel: a, credential: route.credential }, 60)
    }
    expect(used).toEqual(['a two', 'b key', 'a three', 'a one'])
  })

  test('a credential that is sent to rest between two attempts is not offered to the next', () => {
    const a = channel('a', { credentials: ['shared'] })
    const b = channel('b', { credentials: ['shared'], priority: 1 })
    const { channels } = open([a, b])
    const routes = channels.routes(offers)[Symbol.iterator]()
    const first = routes.next()
    expect(first.done).toBe(false)
    channels.rest({ channel: b, credential: 'shared' }, 60)
    expect(routes.next().done).toBe(true)
  })
})
