import type { Model } from '../catalogue/model.ts'
import { showPrices } from '../catalogue/show-prices.ts'

/** A model as operators see it. */
export function showModel(model: Model) {
  const { id, capabilities, vendor, confidence, source, prices, contextTokens, outputTokensMax } = model
  const isChat = capabilities.includes('chat')
  return {
    id,
    capabilities,
    vendor,
    ...(model.aliasOf !== undefined && { alias_of: model.aliasOf }),
    ...(!model.contextAssumed && { context_tokens: contextTokens }),
    ...(isChat && { output_tokens_max: outputTokensMax }),
    prices: showPrices(prices),
    confidence,
    source,
    ...(model.end !== undefined && { end: model.end }),
  }
}
