import { join } from 'node:path'
import type { Log } from './base/log.ts'
import type { PriceList, Rates } from './capabilities/usage.ts'
import type { Catalogue, Model } from './catalogue/model.ts'
import type { Environment } from './config/environment.ts'
import { noSandboxMessage, remoteSandbox } from './sandbox/remote-sandbox.ts'
import { startSandbox, type Sandbox, type SandboxModel, type SandboxModels } from './sandbox/sandbox.ts'
import type { Channel } from './upstream/channels.ts'
import { vendors } from './vendors/index.ts'
import type { Vendor } from './vendors/vendor.ts'

export type SandboxEnvironment = Pick<Environment, 'sandboxPort' | 'sandboxUrl' | 'dataFolder' | 'databaseUrl'>

/** Starts this node's own simulators, which keep their videos in its folder, or uses shared ones at `SANDBOX_URL`. */
export function openSandbox(
  { environment, log }: { readonly environment: SandboxEnvironment; readonly log: Log },
  models: SandboxModels,
): Omit<Sandbox, 'port'> {
  const { sandboxUrl, sandboxPort, dataFolder, databaseUrl } = environment
  if (sandboxUrl !== undefined) {
    return remoteSandbox(sandboxUrl, (cause) => log.warn({ cause: String(cause) }, noSandboxMessage(sandboxUrl)))
  }
  if (databaseUrl !== undefined) {
    const message =
      "video tasks are polled at this node's own simulators: if several nodes share this database, run npx turnpike sandbox and give every node its address as SANDBOX_URL"
    log.info({}, message)
  }
  const complain = (cause: unknown) => log.warn({ cause: String(cause) }, 'the simulators cannot save their state')
  return startSandbox({ port: sandboxPort, models, memory: { folder: join(dataFolder, 'sandbox'), complain } })
}

/** The key for the simulators, which refuse only `bad-key`. Kling signs with a secret, so its key has two parts. */
function sandboxCredential({ id }: Vendor): string {
  return id === 'kling' ? 'sandbox:sandbox-secret' : 'sandbox'
}

/** One channel for every vendor, to its simulator. The operator's own channels lead there too, under their own ids. */
export function simulatedChannels(configured: readonly Channel[], baseUrl: Sandbox['baseUrl']): Channel[] {
  const named = new Set(configured.map(({ vendor }) => vendor.id))
  const others = [...vendors.values()]
    .filter(({ id }) => !named.has(id))
    .map((vendor) => ({ id: vendor.id, vendor, weight: 1, priority: 0 }))
  return [...configured, ...others].map((channel) => ({
    ...channel,
    baseUrl: baseUrl(channel.vendor.id),
    credentials: [sandboxCredential(channel.vendor)],
    isSimulator: true,
  }))
}

/** The catalogue as plain data for the simulators, which share none of our types, and so no mistake of ours. */
export function simulatedModels(catalogue: Catalogue, configured: readonly Channel[]): SandboxModel[] {
  const found: SandboxModel[] = []
  for (const model of catalogue.models.values()) {
    for (const offer of model.offers) {
      const vendor = offer.vendor ?? vendorOf(offer.channel, configured)
      if (vendor !== undefined) found.push(simulatedModel(model, vendor, offer.upstreamModel))
    }
  }
  return found
}

/** A vendor without a configured channel has one under its own id: see `simulatedChannels`. */
function vendorOf(channel: string, configured: readonly Channel[]): string | undefined {
  return (configured.find(({ id }) => id === channel)?.vendor ?? vendors.get(channel))?.id
}

function simulatedModel(model: Model, vendor: string, upstreamModel: string): SandboxModel {
  const { rates, tiers, perImage } = model.costs
  const { request, webSearch, character } = rates
  return {
    vendor,
    model: upstreamModel,
    capabilities: model.capabilities,
    ...thinkingOf(model, vendor, upstreamModel),
    contextTokens: model.contextTokens,
    outputTokensMax: model.outputTokensMax,
    prices: {
      ...tokenPrices(rates),
      ...(request !== undefined && { request }),
      ...(webSearch !== undefined && { webSearch }),
      ...(character !== undefined && { character }),
      perImage,
      ...videoPrices(model.costs, vendor),
      tiers: tiers.map(({ aboveInputTokens, rates: raised }) => {
        return { aboveInputTokens, ...tokenPrices({ ...rates, ...raised }) }
      }),
    },
  }
}

/** Models of the reasoning class reason at every vendor; Anthropic's do where the catalogue has efforts for them. */
function thinkingOf(model: Model, vendor: string, upstreamModel: string) {
  const { reasoning, efforts, rules } = model
  if (vendor !== 'anthropic') return { reasoning, efforts }
  const own = efforts.filter((effort) => effort !== 'none' && effort !== 'minimal')
  const isAdaptive = efforts.includes('xhigh') || efforts.includes('max')
  // This effort came with Opus 4.7, which no longer takes a budget. Instructions in the middle came with Opus 4.8.
  const isLater = efforts.includes('xhigh')
  const rest = rules.includes('rests-between-tools') ? 'between_tools' : 'disabled'
  return {
    reasoning: efforts.length > 0,
    efforts: own,
    asides: isLater && !upstreamModel.includes('opus-4-7'),
    ...(isLater && { thinkingTypes: ['adaptive', ...(efforts.includes('none') ? [rest] : [])] }),
    ...(isLater && { sampling: false }),
    ...(rules.includes('refuses-forced-calls') && { forcedCalls: false }),
    ...(isAdaptive && { prefill: false }),
  }
}

/** What vendors call a resolution, where their word is not ours. */
const ownResolutions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  kling: { '720p': 'std', '1080p': 'pro' },
}

/** A price that does not exist is left out, so that the simulator charges by another one and not by zero. */
function videoPrices(
  { perSecond, perVideo, perVideoToken }: PriceList,
  vendor: string,
): Partial<SandboxModel['prices']> {
  const tokens = Object.entries(perVideoToken)
  const plain = tokens.filter(([key]) => !key.endsWith(inputSuffix))
  const special = tokens.filter(([key]) => key.endsWith(inputSuffix))
  return {
    ...(Object.keys(perSecond).length > 0 && { videoSecond: videoRates(Object.entries(perSecond), vendor) }),
    ...(Object.keys(perVideo).length > 0 && { perVideo }),
    ...(plain.length > 0 && { videoToken: videoRates(plain, vendor) }),
    ...(special.length > 0 && {
      videoTokenWithInput: videoRates(
        special.map(([key, rate]) => [key.slice(0, -inputSuffix.length), rate]),
        vendor,
      ),
    }),
  }
}

const inputSuffix = '/input'

/** Puts `720p/sound` and `720p/silent` back into one entry. */
function videoRates(table: readonly (readonly [key: string, rate: bigint])[], vendor: string) {
  const rates: Record<string, bigint | { sound: bigint; silent: bigint }> = {}
  for (const [key, rate] of table) {
    const [resolution = '', heard] = key.split('/')
    const own = ownResolutions[vendor]?.[resolution] ?? resolution
    const before = rates[own]
    const pair = typeof before === 'object' ? before : { sound: rate, silent: rate }
    rates[own] = heard === undefined ? rate : { ...pair, [heard]: rate }
  }
  return rates
}

function tokenPrices(rates: Rates) {
  const { cachedInput, cacheWrite, cacheWriteHour, imageInput, imageOutput, audioInput, audioOutput } = rates
  const { thinkingOutput } = rates
  return {
    input: rates.input ?? 0n,
    output: rates.output ?? 0n,
    ...(thinkingOutput !== undefined && { thinkingOutput }),
    ...(cachedInput !== undefined && { cachedInput }),
    ...(cacheWrite !== undefined && { cacheWrite5m: cacheWrite }),
    ...(cacheWriteHour !== undefined && { cacheWrite1h: cacheWriteHour }),
    ...(imageInput !== undefined && { imageInput }),
    ...(imageOutput !== undefined && { imageOutput }),
    ...(audioInput !== undefined && { audioInput }),
    ...(audioOutput !== undefined && { audioOutput }),
  }
}
