import type { Model } from '../catalogue/model.ts'
import { showPrices } from '../catalogue/show-prices.ts'
import type { ToolContext } from './tool-context.ts'
import { section } from './reference.ts'

/** The models that the caller may use. One outside its scope is treated as if it did not exist. */
export function modelsFor({ models, principal }: Pick<ToolContext, 'models' | 'principal'>): [string, Model][] {
  return [...models].filter(([id]) => principal.mayUse(id))
}

/** A model as the tools show it, under the id by which the client asks for it, which may be an alias. */
export function showModel(id: string, model: Model): Record<string, unknown> {
  return {
    id,
    owned_by: model.vendor,
    capabilities: model.capabilities,
    ...(model.aliasOf !== undefined && { alias_of: model.aliasOf }),
    ...(model.capabilities.includes('chat') && {
      ...(!model.contextAssumed && { context_tokens: model.contextTokens }),
      output_tokens_max: model.outputTokensMax,
      ...(model.efforts.length > 0 && { reasoning_efforts: model.efforts }),
    }),
    ...(model.end !== undefined && { shutdown_date: model.end.date }),
    prices: showPrices(model.prices),
  }
}

/** A model as one of many in a list: enough prices to choose by, without those for caches and long prompts. */
export function briefly(shown: ReturnType<typeof showModel>): Record<string, unknown> {
  const { output_tokens_max: _, reasoning_efforts: __, prices, ...rest } = shown
  const main = Object.entries(prices ?? {}).filter(([name]) => !besides.has(name))
  return { ...rest, prices: Object.fromEntries(main) }
}

const besides: ReadonlySet<string> = new Set([
  'cachedInputPerMillion',
  'cacheWritePerMillion',
  'cacheWriteHourPerMillion',
  'imageInputPerMillion',
  'thinkingOutputPerMillion',
  'webSearchPerThousand',
  'tiers',
])

/** What a model accepts, per capability. */
export function limitsOf({ images, embeddings, speech, video }: Model) {
  return {
    ...(images && { images }),
    ...(embeddings && { embeddings }),
    ...(speech && { speech }),
    ...(video && { video }),
  }
}

/** One model's page: what it accepts, what it costs, and an example call. */
export function modelPage(id: string, model: Model): string {
  const limits = limitsOf(model)
  const sections = [
    `# ${id}`,
    `Does ${model.capabilities.join(', ')}. Made by ${model.vendor}.`,
    section('Facts and prices (dollars)', showModel(id, model)),
    ...(Object.keys(limits).length === 0 ? [] : [section('What it takes', limits)]),
    ...model.capabilities.map((capability) =>
      section(`To call it: \`${calls[capability][0]}\``, { model: id, ...calls[capability][1] }),
    ),
  ]
  return `${sections.join('\n\n')}\n`
}

const calls = {
  chat: ['chat', { prompt: 'Hello!' }],
  embeddings: ['create_embeddings', { input: ['a river', 'a stream'] }],
  images: ['generate_image', { prompt: 'A lighthouse at dusk, ink.' }],
  edits: ['edit_image', { prompt: 'Make it night.', images: ['https://…'] }],
  speech: ['speak', { input: 'Good morning.' }],
  video: ['generate_video', { prompt: 'Waves against a lighthouse.', wait: true }],
} as const satisfies Record<Model['capabilities'][number], readonly [string, object]>
