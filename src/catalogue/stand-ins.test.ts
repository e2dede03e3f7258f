import { describe, expect, test } from 'bun:test'
import { pico } from '../base/money.ts'
import { buildCatalogue, loadFamilies } from './load.ts'
import { readOverrides } from './schema.ts'

const families = loadFamilies()

function build(models: unknown, sandbox = false) {
  return buildCatalogue({ families, overrides: readOverrides(models), sandbox, at: Date.now() })
}

/** In pico-dollars. */
function inCents(amount: bigint): bigint {
  return amount * 10_000_000_000n
}

const llama = { id: 'my-llama', capability: 'chat', channels: [{ channel: 'local' }] }

describe("an operator's prices that do not cover every answer", () => {
  test('a price by resolution is charged in the sandbox, where a stand-in with the same markup fills the gap', () => {
    const overrides = [{ id: 'wan2.6-t2v', prices: { perSecond: { '720p': '0.33' }, markup: '2' } }]
    const why = 'perSecond for 1080p'
    expect(build(overrides).unsold).toContainEqual({ id: 'wan2.6-t2v', why: `no price: ${why}` })
    expect(build(overrides, true).models.get('wan2.6-t2v')).toMatchObject({
      costs: { perSecond: { '720p': inCents(33n), default: inCents(10n) } },
      prices: { perSecond: { '720p': inCents(66n), default: inCents(20n) } },
      confidence: 'unverified',
      source: expect.stringContaining(why),
    })
  })

  test('a price by size is charged in the sandbox', () => {
    const overrides = [{ id: 'dall-e-2', prices: { perImage: { '256x256': '0.33' } } }]
    const prices = { perImage: { '256x256': inCents(33n), default: inCents(4n) } }
    expect(build(overrides, true).models.get('dall-e-2')).toMatchObject({ prices })
  })

  test('a rate of its own stays in every tier', () => {
    const tiers = [{ aboveInputTokens: 1000, inputPerMillion: '9' }]
    const model = build([{ ...llama, prices: { inputPerMillion: '3', tiers } }], true).models.get('my-llama')
    expect(model?.prices).toMatchObject({
      rates: { input: 3_000_000n, cachedInput: 3_000_000n, output: 4_000_000n },
      tiers: [{ aboveInputTokens: 1000, rates: { input: 9_000_000n, output: 4_000_000n } }],
    })
  })

  test('prices that stand-ins cannot complete are replaced as a whole', () => {
    const prices = { perMillionVideoTokens: { '720p': '10' } }
    const model = build([{ id: 'doubao-seedance-2-0-260128', prices }], true).models.get('doubao-seedance-2-0-260128')
    expect(model?.prices.perVideoToken).toEqual({})
    expect(model?.prices.perSecond).toEqual({ default: pico(inCents(10n)) })
  })
})
