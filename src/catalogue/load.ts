import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { sourceFile } from '../base/program-files.ts'
import { parseYaml } from '../base/yaml.ts'
import type { PriceList } from '../capabilities/usage.ts'
import { missingPrices, sandboxPrices } from './complete.ts'
import { priceSpanAt } from './dated-prices.ts'
import { CatalogueError } from './error.ts'
import { embeddingLimits, imageLimits, speechLimits, videoLimits } from './limits.ts'
import type { Catalogue, Model, Unsold } from './model.ts'
import { aliasOffers, applyOverrides, type Entries, type Entry, readFamilies } from './overrides.ts'
import { compilePrices, type Exchange, fillIn, type PriceLayer, readExchange } from './prices.ts'
import type { FamilyFile, OperatorModel, WrittenPrices } from './schema.ts'

/**
 * The built-in files, in the order of their names. Every call reads them again.
 *
 * They are part of the program and change only with it, so a start does not check them: the tests check every one
 * against the schema, which takes some 40 ms that each cold start would pay.
 */
export function loadFamilies(): FamilyFile[] {
  const folder = fileURLToPath(sourceFile('catalogue/models/'))
  const names = readdirSync(folder).filter((name) => name.endsWith('.yaml'))
  return names.toSorted().map((name) => {
    const content = parseYaml(readFileSync(folder + name, 'utf8'))
    if (!isFamily(content)) throw new TypeError(`${name} is not a family of models`)
    return { ...content, name }
  })
}

function isFamily(content: unknown): content is FamilyFile {
  return typeof content === 'object' && content !== null && 'vendor' in content && 'models' in content
}

export type Sources = {
  readonly families: readonly FamilyFile[]
  /** The operator's `models:`, from `readOverrides`. */
  readonly overrides?: readonly OperatorModel[]
  /** Dollars for one unit of a currency, overriding the built-in rates. */
  readonly exchange?: Readonly<Record<string, string>>
  readonly sandbox: boolean
  /** Unix milliseconds: prices are those of this moment. */
  readonly at: number
}

/** Works out everything that can be sold, once, and freezes it. */
export function buildCatalogue({ families, overrides = [], exchange, sandbox, at }: Sources): Catalogue {
  const rates = readExchange(exchange)
  const entries = readFamilies(families, at)
  applyOverrides(entries, overrides)
  checkAliases(entries)

  const models = new Map<string, Model>()
  const unsold: Unsold[] = []
  const unpriced: string[] = []
  for (const entry of entries.values()) {
    const model = buildModel(entry, rates, sandbox)
    if ('lacking' in model) {
      unpriced.push(entry.id)
      unsold.push({ id: entry.id, why: `no price: ${model.lacking}` })
      continue
    }
    if ('why' in model) {
      unsold.push(model)
      continue
    }
    models.set(model.id, model)
    for (const alias of buildAliases(entry, model, sandbox)) models.set(alias.id, alias)
  }
  const ordered = new Map([...models].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  // Arrays that came from the files are shared with the models, and are frozen too.
  for (const model of ordered.values()) freeze(model)
  return Object.freeze({
    models: sealed(ordered),
    unsold: freeze(unsold),
    unpriced: freeze(unpriced),
    priceSpan: priceSpanAt(families, at),
  })
}

// For models of operators that leave these out. 128,000 and 16,384 are gpt-4o's: enough for ordinary use, and small
// enough that the hold for a whole answer stays affordable. More would hold money for tokens that a local model cannot
// make.
const contextTokensDefault = 128_000
const outputTokensDefault = 16_384
/** The common protocol's bound; a vendor that gives fewer choices is called several times. */
const choicesDefault = 128

/** What has no price, in the words of the files, of a model that could be sold if it had one. */
type Unpriced = { readonly lacking: string }

function buildModel(entry: Entry, exchange: Exchange, sandbox: boolean): Model | Unsold | Unpriced {
  const { id, facts } = entry
  if (entry.hidden) return { id, why: 'hidden by the operator' }
  if (entry.retired && !sandbox) return { id, why: 'retired by its vendor' }
  const contextTokens = facts.contextTokens ?? contextTokensDefault
  const { images, embeddings, speech, video } = facts
  const has = (...wanted: Entry['capabilities']) => wanted.some((capability) => entry.capabilities.includes(capability))
  const limits = {
    ...(has('images', 'edits') ? { images: imageLimits(images ?? {}, has('edits')) } : {}),
    ...(has('embeddings')
      ? { embeddings: embeddingLimits(embeddings ?? {}, contextTokens, entry.pinned?.dimensions) }
      : {}),
    ...(has('speech') ? { speech: speechLimits(speech ?? {}) } : {}),
    ...(has('video') ? { video: videoLimits(video ?? {}) } : {}),
  }
  const money = buildMoney(entry, exchange, limits, sandbox)
  if ('lacking' in money) return money
  return {
    id,
    capabilities: entry.capabilities,
    vendor: entry.vendor,
    created: Date.parse(`${entry.date}T00:00:00Z`) / 1000,
    offers: entry.offers,
    contextTokens,
    ...(facts.contextTokens === undefined && { contextAssumed: true }),
    outputTokensMax: facts.outputTokensMax ?? Math.min(outputTokensDefault, contextTokens),
    choicesMax: facts.choicesMax ?? choicesDefault,
    reasoning: facts.reasoning ?? false,
    efforts: facts.efforts ?? [],
    ...(facts.efforts?.length === 0 && { refusesEffort: true as const }),
    rules: facts.rules ?? [],
    ...money,
    ...(entry.end === undefined ? {} : { end: entry.end }),
    ...(entry.pinned === undefined ? {} : { pinned: entry.pinned }),
    ...limits,
  }
}

type Money = Pick<Model, 'prices' | 'costs' | 'source' | 'confidence'>

/**
 * A model is sold only if every answer it can give has a price. In sandbox mode, play-money prices fill the gap: beside
 * the prices that are there, if they then make a whole, so that an operator's own are charged as they were written.
 */
function buildMoney(
  entry: Entry,
  exchange: Exchange,
  limits: Pick<Model, 'images' | 'video'>,
  sandbox: boolean,
): Money | Unpriced {
  const lackingIn = (list: PriceList) =>
    entry.capabilities
      .map((capability) => missingPrices(capability, list, limits))
      .find((missing) => missing !== undefined)
  const own = compilePrices(entry.layers, exchange)
  const lacking = lackingIn(own.prices)
  if (lacking === undefined) return { ...own, source: entry.source, confidence: entry.confidence }
  if (!sandbox) return { lacking }
  const written: WrittenPrices = Object.assign({}, ...entry.capabilities.map((capability) => sandboxPrices[capability]))
  const standIn = compilePrices([{ written, path: entry.path }, ...entry.layers.map(markupAlone)], exchange)
  const filled = { costs: fillIn(own.costs, standIn.costs), prices: fillIn(own.prices, standIn.prices) }
  return {
    ...(lackingIn(filled.prices) === undefined ? filled : standIn),
    source: `stand-in for sandbox mode, no price known: ${lacking}`,
    confidence: 'unverified',
  }
}

function markupAlone({ written: { markup }, path }: PriceLayer): PriceLayer {
  return { written: markup === undefined ? {} : { markup }, path }
}

function buildAliases(entry: Entry, model: Model, sandbox: boolean): Model[] {
  return entry.aliases
    .filter((alias) => sandbox || !alias.sandboxOnly)
    .map((alias) => {
      const { pinned } = alias
      const aliased = { ...model, id: alias.id, aliasOf: model.id, offers: aliasOffers(model.offers, alias) }
      if (pinned === undefined) return aliased
      const embeddings = embeddingLimits(entry.facts.embeddings ?? {}, model.contextTokens, pinned.dimensions)
      return { ...aliased, pinned, embeddings }
    })
}

/** An id means one thing: no alias may be the id of a model or of another alias. */
function checkAliases(entries: Entries): void {
  const taken = new Set(entries.keys())
  const byOperator = Object.groupBy(entries.values(), (entry) => (entry.path[0] === 'models' ? 'yes' : 'no'))
  // The operator's entries come last, so that a clash is reported in the file that the operator can change.
  for (const entry of [...(byOperator.no ?? []), ...(byOperator.yes ?? [])]) {
    for (const { id } of entry.aliases) {
      if (taken.has(id)) throw new CatalogueError([...entry.path, 'aliases'], `${id} is already in the catalogue`)
      taken.add(id)
    }
  }
}

function freeze<T extends object>(value: T): T {
  for (const field of Object.values(value)) {
    if (typeof field === 'object' && field !== null && !Object.isFrozen(field)) freeze(field)
  }
  return Object.freeze(value)
}

/** Freezing a Map does not protect its entries, so its mutating methods are replaced. */
function sealed<K, V>(map: Map<K, V>): ReadonlyMap<K, V> {
  return Object.freeze(Object.assign(map, { set: refuse, delete: refuse, clear: refuse }))
}

function refuse(): never {
  throw new TypeError('the catalogue is a snapshot and does not change')
}
