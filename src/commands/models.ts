import { showModel } from '../admin/show-model.ts'
import type { PriceList } from '../capabilities/usage.ts'
import type { Model, Unsold } from '../catalogue/model.ts'
import { showOtherPrices, showRate } from '../catalogue/show-prices.ts'
import { notServed, servedModels, whyNothing, type Plan } from '../plan.ts'
import { simulatedChannels } from '../simulated.ts'
import { planStart } from './installation.ts'
import { counted, say, sayJson, table, type Column } from './output.ts'

/** `turnpike models`: lists what a start would sell now and, with `--all`, what it would not, and why. */
export async function models(options: { config?: string; json?: boolean; all?: boolean }): Promise<void> {
  const plan = await planStart(options.config)
  const { models: sold, others } = offerOf(plan)
  const served = [...sold.values()]
  if (options.json) {
    sayJson({ data: [...served.map(showModel), ...(options.all ? others : [])] })
    return
  }
  if (served.length === 0) say(`Nothing is served in ${plan.mode} mode: ${whyNothing(plan.configured)}.`)
  else {
    say(table(columns, served))
    say()
    say(
      `${counted(served.length, 'model')} in ${plan.mode} mode. Dollars, markup included: per million tokens, and OTHER per what it says.`,
    )
  }
  if (others.length === 0) return
  if (options.all) {
    say()
    say(table(unsoldColumns, others))
  } else say(`${others.length} more are not served; --all says why.`)
}

/** The models that a start would sell now, and those that it would not. */
export function offerOf({ mode, configured, catalogue }: Plan) {
  const channels = mode === 'sandbox' ? simulatedChannels(configured, () => '') : configured
  return { models: servedModels(catalogue, channels), others: notServed(catalogue, channels) }
}

const columns: readonly Column<Model>[] = [
  { name: 'MODEL', show: ({ id }) => id },
  { name: 'VENDOR', show: ({ vendor }) => vendor },
  { name: 'CAPABILITIES', show: ({ capabilities }) => capabilities.join(', ') },
  { name: 'INPUT', align: 'right', show: ({ prices }) => showRate(prices, 'inputPerMillion') },
  { name: 'CACHED', align: 'right', show: ({ prices }) => showRate(prices, 'cachedInputPerMillion') },
  { name: 'OUTPUT', align: 'right', show: ({ prices }) => showRate(prices, 'outputPerMillion') },
  { name: 'ABOVE', align: 'right', show: ({ prices }) => tiers(prices) },
  { name: 'OTHER', show: ({ prices }) => showOtherPrices(prices) },
  { name: 'CONFIDENCE', show: ({ confidence }) => confidence },
  { name: 'ENDS', show: ({ end }) => end?.date ?? '-' },
]

export const unsoldColumns: readonly Column<Unsold>[] = [
  { name: 'NOT SERVED', show: ({ id }) => id },
  { name: 'WHY', show: ({ why }) => why },
]

/** The input lengths above which other prices apply; `--json` has those prices. */
function tiers({ tiers }: PriceList): string {
  return tiers.length === 0 ? '-' : tiers.map(({ aboveInputTokens }) => `${aboveInputTokens / 1000}k`).join(', ')
}
