import type { Clock } from './base/clock.ts'
import { CatalogueError } from './catalogue/error.ts'
import { buildCatalogue, loadFamilies } from './catalogue/load.ts'
import { isOfferedAt, type Catalogue, type Model, type ModelsOnOffer, type Unsold } from './catalogue/model.ts'
import { readOverrides, type OperatorModel } from './catalogue/schema.ts'
import type { ConfigFile } from './config/file.ts'
import type { Mode } from './store/schema.ts'
import type { Channel } from './upstream/channels.ts'
import { ChannelError, configuredChannels, unknownVendor } from './upstream/configured.ts'
import { ourModelId, type LocalServer } from './upstream/discover.ts'
import { vendors } from './vendors/index.ts'

/** What follows from the file and the environment before anything is started: all that commands need of the market. */
export type Plan = {
  readonly mode: Mode
  readonly configured: readonly Channel[]
  readonly catalogue: Catalogue
}

export type PlanOptions = {
  readonly file: ConfigFile
  /** Where vendors' usual variables are looked for. */
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly hasRealAccount: boolean
  /** Decides which of the prices that vendors announce have begun. */
  readonly clock: Pick<Clock, 'now'>
}

export function planMarket({ file, variables, hasRealAccount, clock }: PlanOptions): Plan {
  const configured = readChannels(file, variables)
  const isSandbox = file.settings.sandbox ?? (configured.length === 0 && !hasRealAccount)
  return { mode: isSandbox ? 'sandbox' : 'real', configured, catalogue: readCatalogue(file, isSandbox, clock) }
}

export function readChannels(file: ConfigFile, variables: PlanOptions['variables']): Channel[] {
  try {
    return configuredChannels(file.settings.channels, variables)
  } catch (thrown) {
    if (thrown instanceof ChannelError) throw file.complain(thrown.path, thrown.message)
    throw thrown
  }
}

export function readCatalogue(
  file: ConfigFile,
  sandbox: boolean,
  clock: PlanOptions['clock'],
  local: readonly LocalServer[] = [],
): Catalogue {
  const { models, exchange } = file.settings
  try {
    const written = readOverrides(models)
    checkChannelNames(written, file)
    const families = loadFamilies()
    const known = new Set([...families.flatMap((family) => family.models), ...written].map(({ id }) => id))
    const found = readOverrides(localModels(local).filter(({ id }) => !known.has(id)))
    return buildCatalogue({ families, overrides: [...written, ...found], exchange, sandbox, at: clock.now() })
  } catch (thrown) {
    if (thrown instanceof CatalogueError) throw file.complain(thrown.path, thrown.reason)
    throw thrown
  }
}

/**
 * Refuses an unknown channel or vendor as a typing error. The channel of a known vendor is merely not configured now,
 * and its models are not on sale until it is.
 */
function checkChannelNames(written: readonly OperatorModel[], file: ConfigFile): void {
  const known = new Set([...file.settings.channels.map(({ id }) => id), ...vendors.keys()])
  written.forEach(({ vendor, channels = [] }, model) => {
    // Beside channels, which say where the model can be had, it is only a name to list the model under.
    if (vendor !== undefined && channels.length === 0 && !vendors.has(vendor)) {
      throw file.complain(['models', model, 'vendor'], unknownVendor(vendor))
    }
    channels.forEach(({ channel }, place) => {
      if (known.has(channel)) return
      throw file.complain(['models', model, 'channels', place, 'channel'], `there is no channel ${channel}`)
    })
  })
}

/** Models of local servers cost nothing unless the operator prices them, under the same id in the file. */
function localModels(servers: readonly LocalServer[]) {
  const channels = new Map<string, { channel: string; upstreamModel: string }[]>()
  for (const { channel, upstreamModels } of servers) {
    for (const upstreamModel of upstreamModels) {
      const id = ourModelId(upstreamModel)
      // A server names its models as it likes, also by files and paths, so that some have no valid id. Two servers may
      // have the same model.
      if (id === undefined) continue
      const known = channels.get(id) ?? []
      if (!known.some((offer) => offer.channel === channel.id)) known.push({ channel: channel.id, upstreamModel })
      channels.set(id, known)
    }
  }
  const free = { inputPerMillion: '0', outputPerMillion: '0' }
  return [...channels].map(([id, offers]) => {
    return { id, capability: embeds.test(id) ? 'embeddings' : 'chat', channels: offers, prices: free }
  })
}

// A list of models does not say what they are for, but the names of embedding models show it.
const embeds = /embed|^(?:baai-)?bge-|(?:^|-)(?:e5|gte|minilm)-/

/** The models that these channels serve: a model needs a price, and a channel that has it and speaks its capability. */
export function servedModels(catalogue: Catalogue, channels: readonly Channel[]): ModelsOnOffer {
  const served = [...catalogue.models].filter(([, model]) => isServed(model, channels))
  return Object.assign(new Map(served), { unpriced: new Set(catalogue.unpriced) })
}

function isServed({ capabilities, offers }: Model, channels: readonly Channel[]): boolean {
  return channels.some(
    (channel) =>
      sellsAny(channel, offers) && capabilities.some((capability) => channel.vendor[capability] !== undefined),
  )
}

function sellsAny({ id, vendor }: Channel, offers: Model['offers']): boolean {
  return offers.some((offer) => isOfferedAt(offer, id, vendor.id))
}

/** The models that these channels do not serve, and why: they have no price, or no channel has them. In order of id. */
export function notServed(catalogue: Catalogue, channels: readonly Channel[]): readonly Unsold[] {
  const idle = [...catalogue.models.values()].filter((model) => !isServed(model, channels))
  const others = [...catalogue.unsold, ...idle.map((model) => ({ id: model.id, why: whyIdle(model, channels) }))]
  return others.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

/** Why no model at all is served. */
export function whyNothing(configured: readonly Channel[]): string {
  if (configured.length === 0) return 'no vendor is configured'
  return 'no configured channel offers a model (turnpike models --all says why)'
}

function whyIdle({ offers, capabilities }: Model, channels: readonly Channel[]): string {
  if (channels.some((channel) => sellsAny(channel, offers))) {
    return `${capabilities.join(', ')} is not served yet`
  }
  const places = offers.map(({ vendor, channel }) => (vendor === undefined ? `channel ${channel}` : `vendor ${vendor}`))
  return `no channel: ${places.join(', ')} ${places.length === 1 ? 'is' : 'are'} not configured`
}
