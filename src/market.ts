import type { Clock, Timers } from './base/clock.ts'
import type { Opening } from './base/closing.ts'
import type { Log } from './base/log.ts'
import type { Catalogue, ModelsOnOffer, Unsold } from './catalogue/model.ts'
import { PriceWatch } from './catalogue/price-watch.ts'
import type { ConfigFile } from './config/file.ts'
import {
  notServed,
  planMarket,
  readCatalogue,
  readChannels,
  servedModels,
  whyNothing,
  type PlanOptions,
} from './plan.ts'
import { openSandbox, simulatedChannels, simulatedModels, type SandboxEnvironment } from './simulated.ts'
import type { Mode } from './store/schema.ts'
import { makeChannels, type Channel, type Channels } from './upstream/channels.ts'
import { discoverLocalServers, type LocalServer } from './upstream/discover.ts'
import type { Transport } from './upstream/transport.ts'
import type { Vendor } from './vendors/vendor.ts'

/** The models on offer at one moment, and the channels that have them. Immutable: a reload makes another. */
export type Offering = {
  readonly channels: Channels
  /** Models that have a price and a channel that speaks their capability. */
  readonly models: ModelsOnOffer
  /** All other models, each with the reason; worked out when an operator asks. */
  readonly unsold: () => readonly Unsold[]
  /** Why there is nothing to sell, if so. */
  readonly whyEmpty?: string
}

export type Market = {
  readonly mode: Mode
  readonly sandboxUrl: string | undefined
  readonly current: Offering
  reload(file: ConfigFile): void
  /** Adds the models of local servers. Does nothing in sandbox mode, because these servers are real. */
  addLocal(servers: readonly LocalServer[]): void
  /** Loads the simulators in sandbox mode, for which a start does not wait. */
  warmUp(): void
}

export type MarketOptions = PlanOptions & {
  readonly environment: SandboxEnvironment
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Log
  readonly closing: Opening<'simulators' | 'prices'>
}

/**
 * Brings catalogue, channels and, in sandbox mode, the simulators together: anew when the file changes, and when prices
 * begin that a vendor has announced.
 */
export function makeMarket(options: MarketOptions): Market {
  const { file, variables, clock, timers, log, closing } = options
  const { mode, configured, catalogue } = planMarket(options)
  const isSandbox = mode === 'sandbox'
  const sandbox = isSandbox ? openSandbox(options, () => simulatedModels(catalogue, configured)) : undefined
  if (sandbox !== undefined) closing.opened('simulators', () => sandbox.stop())
  const prices = new PriceWatch({ clock, timers, change: changePrices })
  closing.opened('prices', () => prices.close())

  let used = file
  let found: readonly LocalServer[] = []
  let current = offeringOf(catalogue, configured)
  prices.waitFor(catalogue.priceSpan)

  function offeringOf(listed: Catalogue, real: readonly Channel[]): Offering {
    const all = sandbox === undefined ? real : simulatedChannels(real, (vendor) => sandbox.baseUrl(vendor))
    const models = servedModels(listed, all)
    return {
      channels: makeChannels(all, clock, Math.random),
      models,
      unsold: () => notServed(listed, all),
      ...(models.size === 0 && { whyEmpty: whyNothing(all) }),
    }
  }

  /** Gives the local servers that are offered: a channel of the file replaces a server that was found under its id. */
  function reload(changed: ConfigFile): readonly LocalServer[] {
    const written = readChannels(changed, variables)
    const local = found.filter(({ channel }) => !written.some(({ id }) => id === channel.id))
    const listed = readCatalogue(changed, isSandbox, clock, local)
    sandbox?.serve(() => simulatedModels(listed, written))
    current = offeringOf(listed, [...written, ...local.map(({ channel }) => channel)])
    prices.waitFor(listed.priceSpan)
    used = changed
    return local
  }

  function changePrices(): void {
    try {
      reload(used)
      log.info({}, 'the prices are now those that vendors have announced for this time')
    } catch (thrown) {
      // The files were read before; only another version of the program, installed over this one, can make them unfit.
      log.error(
        { cause: String(thrown) },
        'the prices that vendors have announced for this time apply only after a restart',
      )
    }
  }

  return {
    mode,
    sandboxUrl: sandbox?.url,
    get current() {
      return current
    },
    reload(changed) {
      reload(changed)
    },
    addLocal(servers) {
      if (isSandbox || servers.length === 0) return
      found = servers
      for (const { channel, upstreamModels } of reload(used)) {
        const fields = { channel: channel.id, models: upstreamModels.length }
        log.info(fields, 'a local model server was found; its models are offered')
      }
    },
    warmUp: () => sandbox?.warmUp(),
  }
}

/** Never throws: whatever a server on this machine says of itself, the gateway has to go on working. */
export async function offerLocalModels(
  ownPort: number,
  transport: Transport,
  market: Market,
  { log, localVendors }: { readonly log: Log; readonly localVendors?: Iterable<Vendor> },
): Promise<void> {
  try {
    market.addLocal(await discoverLocalServers(transport, ownPort, localVendors))
  } catch (thrown) {
    log.warn({ cause: String(thrown) }, 'the models of local servers could not be added')
  }
}
