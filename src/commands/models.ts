import { formatDollars, pico, toNano, type Pico } from '../base/money.ts'
import { units, type PriceList, type Unit } from '../capabilities/usage.ts'
import type { Model, Offer } from '../catalogue/model.ts'
import { servedModels, simulatedChannels, type Plan } from '../market.ts'
import type { Channel } from '../upstream/channels.ts'
import { planStart } from './installation.ts'
import { say, sayJson, table, type Column } from './output.ts'

/** `turnpike models`: what a start would sell now, and under `--all` what it would not, and why. */
export async function models(options: { config?: string; json?: boolean; all?: boolean }): Promise<void> {
  const plan = await planStart(options.config)
  const { served, others } = split(plan)
  if (options.json) {
    sayJson({ data: [...served.map(show), ...(options.all ? others : [])] })
    return
  }
  if (served.length === 0) say(`Nothing is served in ${plan.mode} mode: no vendor is configured.`)
  else {
    say(table(columns, served))
    say()
    say(`${served.length} models in ${plan.mode} mode. Dollars per million tokens, markup included.`)
  }
  if (options.all) {
    say()
    say(table(unsoldColumns, others))
  } else if (others.length > 0) say(`${others.length} more are not served; --all says why.`)
}

type NotServed = { readonly id: string; readonly why: string }

function split(plan: Plan): { served: Model[]; others: NotServed[] } {
  const channels = plan.mode === 'sandbox' ? simulatedChannels(plan.configured, () => '') : plan.configured
  const served = servedModels(plan.catalogue, channels)
  const idle = [...plan.catalogue.models.values()].filter(({ id }) => !served.has(id))
  const others = [...plan.catalogue.unsold, ...idle.map((model) => ({ id: model.id, why: whyIdle(model, channels) }))]
  return { served: [...served.values()], others: others.toSorted((a, b) => (a.id < b.id ? -1 : 1)) }
}

function whyIdle({ offers, capabilities }: Model, channels: readonly Channel[]): string {
  const sells = (offer: Offer) => channels.some(({ id, vendor }) => offer.channel === id || offer.vendor === vendor.id)
  if (offers.some(sells)) return `${capabilities.join(', ')} is not served yet`
  const places = offers.map(({ vendor, channel }) => (vendor === undefined ? `channel ${channel}` : `vendor ${vendor}`))
  return `no channel: ${places.join(', ')} is not configured`
}

const columns: readonly Column<Model>[] = [
  { name: 'MODEL', show: ({ id }) => id },
  { name: 'VENDOR', show: ({ vendor }) => vendor },
  { name: 'CAPABILITIES', show: ({ capabilities }) => capabilities.join(', ') },
  { name: 'INPUT', align: 'right', show: ({ prices }) => rate(prices, 'input') },
  { name: 'CACHED', align: 'right', show: ({ prices }) => rate(prices, 'cachedInput') },
  { name: 'OUTPUT', align: 'right', show: ({ prices }) => rate(prices, 'output') },
  { name: 'ABOVE', align: 'right', show: ({ prices }) => tiers(prices) },
  { name: 'CONFIDENCE', show: ({ confidence }) => confidence },
]

const unsoldColumns: readonly Column<NotServed>[] = [
  { name: 'NOT SERVED', show: ({ id }) => id },
  { name: 'WHY', show: ({ why }) => why },
]

/** How each unit is written in `turnpike.yaml`, and for how many of it the amount stands. */
const written = {
  input: ['inputPerMillion', 1_000_000n],
  cachedInput: ['cachedInputPerMillion', 1_000_000n],
  cacheWrite: ['cacheWritePerMillion', 1_000_000n],
  cacheWriteHour: ['cacheWriteHourPerMillion', 1_000_000n],
  imageInput: ['imageInputPerMillion', 1_000_000n],
  audioInput: ['audioInputPerMillion', 1_000_000n],
  output: ['outputPerMillion', 1_000_000n],
  imageOutput: ['imageOutputPerMillion', 1_000_000n],
  audioOutput: ['audioOutputPerMillion', 1_000_000n],
  character: ['perMillionCharacters', 1_000_000n],
  videoToken: ['perMillionVideoTokens', 1_000_000n],
  webSearch: ['webSearchPerThousand', 1_000n],
  request: ['perRequest', 1n],
} as const satisfies Record<Unit, readonly [key: string, per: bigint]>

function rate({ rates }: PriceList, unit: Unit): string {
  const amount = rates[unit]
  return amount === undefined ? '-' : dollars(amount, written[unit][1])
}

/** Long inputs cost more from here on; `--json` has the prices. */
function tiers({ tiers }: PriceList): string {
  return tiers.length === 0 ? '-' : tiers.map(({ aboveInputTokens }) => `${aboveInputTokens / 1000}k`).join(', ')
}

function dollars(amount: Pico, per: bigint): string {
  return formatDollars(toNano(pico(amount * per)))
}

/** As the operator's API shows it: prices in the words of the file, markup and exchange applied. */
function show(model: Model) {
  const { id, capabilities, vendor, confidence, source, prices, contextTokens, outputTokensMax } = model
  return {
    id,
    capabilities,
    vendor,
    ...(model.aliasOf !== undefined && { alias_of: model.aliasOf }),
    context_tokens: contextTokens,
    output_tokens_max: outputTokensMax,
    prices: showPrices(prices),
    confidence,
    source,
  }
}

function showPrices({ rates, tiers, perImage, perSecond }: PriceList) {
  return {
    ...showRates(rates),
    ...(tiers.length > 0 && {
      tiers: tiers.map((tier) => ({ aboveInputTokens: tier.aboveInputTokens, ...showRates(tier.rates) })),
    }),
    ...(Object.keys(perImage).length > 0 && { perImage: showEach(perImage) }),
    ...(Object.keys(perSecond).length > 0 && { perSecond: showEach(perSecond) }),
  }
}

function showEach(amounts: Readonly<Record<string, Pico>>): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([key, amount]) => [key, dollars(amount, 1n)]))
}

function showRates(rates: PriceList['rates']): Record<string, string> {
  const shown: Record<string, string> = {}
  for (const unit of units) {
    const amount = rates[unit]
    const [key, per] = written[unit]
    if (amount !== undefined) shown[key] = dollars(amount, per)
  }
  return shown
}
