import { afterEach, expect } from 'bun:test'
import { startTestGateway, type TestGateway } from './gateway.ts'
import { recordOf } from './records.ts'
import { says } from './streams.ts'
import { channelsTo, startVendor, type RawVendor, type Reply } from './vendor.ts'

export const vendorKey = 'vk-canary-0123456789-abcdef'

type Reached = { readonly gateway: TestGateway; readonly vendors: RawVendor[]; readonly vendor: RawVendor }

/**
 * A gateway in front of vendors that answer with exact bytes, for one test at a time. Whatever a vendor does, the books
 * must balance and its key must not be logged.
 */
export function gatewaysToVendors() {
  let open: { readonly gateway: TestGateway; readonly vendors: readonly RawVendor[] } | undefined

  afterEach(async () => {
    if (open === undefined) return
    const { gateway, vendors } = open
    open = undefined
    try {
      await gateway.assertBooks()
      expect(gateway.logged.join('')).not.toContain(vendorKey)
    } finally {
      await gateway.close()
      for (const vendor of vendors) await vendor.stop()
    }
  })

  /** For tests that start the gateway with their own settings. */
  function opened(gateway: TestGateway, ...vendors: readonly RawVendor[]): void {
    open = { gateway, vendors }
  }

  async function gatewayTo(replies: Reply | readonly Reply[], more = ''): Promise<Reached> {
    const vendors = await Promise.all([replies].flat().map((reply) => startVendor(reply)))
    const named = Object.fromEntries(vendors.map(({ baseUrl }, index) => [`v${index}`, { baseUrl, key: vendorKey }]))
    const gateway = await startTestGateway({ yaml: channelsTo(named, more) })
    opened(gateway, ...vendors)
    const [vendor] = vendors
    if (vendor === undefined) throw new Error('no vendor')
    return { gateway, vendors, vendor }
  }

  return { gatewayTo, opened }
}

export const hello = (more: Record<string, unknown> = {}) => says('Hello!', { model: 'm', ...more })
export const whole = (gateway: TestGateway, more = {}) => gateway.post('/v1/chat/completions', hello(more))
export const streamed = (gateway: TestGateway, more = {}) => whole(gateway, { stream: true, ...more })

/** Nothing was delivered or charged: the request is on record as failed, at no cost. */
export async function costsNothing(gateway: TestGateway, response: Response, status = 502): Promise<void> {
  expect(response.status).toBe(status)
  expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n, basis: 'policy_zero' })
  expect(await gateway.balance()).toMatchObject({ posted: 0n, held: 0n })
}
