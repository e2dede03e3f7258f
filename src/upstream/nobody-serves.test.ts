import { describe, expect, test } from 'bun:test'
import { standingClock } from '../../test/support/movable-clock.ts'
import { badRequest } from '../base/errors.ts'
import { compatible } from '../vendors/compatible/compatible.ts'
import { makeChannels, type Channel } from './channels.ts'
import { nobodyServes } from './nobody-serves.ts'

const channel = (id: string, vendor: string): Channel => {
  const baseUrl = `https://${id}`
  return { id, vendor: vendors[vendor] ?? plain, baseUrl, credentials: ['key'], weight: 1, priority: 0 }
}
const plain = compatible({ id: 'plain', baseUrl: 'https://plain' })
const vendors: Record<string, typeof plain> = { able: compatible({ id: 'able', baseUrl: 'https://able' }) }
const all = [channel('first', 'plain'), channel('second', 'plain'), channel('third', 'able')]
const [first, second, third] = all as [Channel, Channel, Channel]
const offers = ['plain', 'able'].map((vendor) => ({ vendor, upstreamModel: 'm' }))

const overRate = (resting: Channel) => ({ channel: resting, credential: 'key', upstreamModel: 'm' })
const refused = (resting: Channel) => ({ channel: resting, credential: 'key' })
const refusal = badRequest('This model has no hosted web search.', 'tools')
const wait = { kind: 'too-many', details: { retryAfterSeconds: 30 } }
const nobody = { kind: 'overloaded', details: { retryAfterSeconds: 5 } }

describe('a request that no channel can be asked for', () => {
  test.each([
    ['every channel is over its rate', [], [first, second, third].map(overRate), wait],
    ['every key is refused', [], [first, second, third].map(refused), nobody],
    ['none can express it', [first, second, third], [], refusal],
    ['one that may express it is over its rate', [first, second], [overRate(third)], wait],
    // Waiting does not help here: the operator has to replace the key, or every vendor is like those that refused.
    ['one that may express it has a refused key', [first, second], [refused(third)], refusal],
    ['one of a vendor that cannot express it is over its rate', [first, third], [overRate(second)], refusal],
  ])('is told the truth when %s', (_when, passedOver, rests, told) => {
    const channels = makeChannels(all, standingClock(), () => 0)
    for (const resting of rests) channels.rest(resting, 30)
    const routes = passedOver.map((one) => ({ channel: one, credential: 'key', upstreamModel: 'm' }))
    const asked = { model: 'm', offers, isServedBy: () => true }
    const error = nobodyServes(
      channels,
      asked,
      routes.map((route) => ({ route, refusal })),
    )
    expect(error).toMatchObject(told)
  })

  test('is told to wait for another model of a vendor that cannot express it with the first', () => {
    const channels = makeChannels(all, standingClock(), () => 0)
    const twice = [...offers, { vendor: 'plain', upstreamModel: 'other' }]
    channels.rest({ ...overRate(second), upstreamModel: 'other' }, 30)
    const asked = { model: 'm', offers: twice, isServedBy: () => true }
    const route = { channel: first, credential: 'key', upstreamModel: 'm' }
    expect(nobodyServes(channels, asked, [{ route, refusal }])).toMatchObject(wait)
  })

  test('is not told to wait for a channel that does nothing of the kind', () => {
    const channels = makeChannels(all, standingClock(), () => 0)
    channels.rest(overRate(third), 30)
    const asked = { model: 'm', offers, isServedBy: ({ vendor }: Channel) => vendor === plain }
    const route = { channel: first, credential: 'key', upstreamModel: 'm' }
    expect(nobodyServes(channels, asked, [{ route, refusal }])).toBe(refusal)
  })
})
