import { matchesGlob } from '../base/glob.ts'
import { pricesAt } from './dated-prices.ts'
import { CatalogueError, type Path } from './error.ts'
import type { Confidence, Offer } from './model.ts'
import { nearestId } from './nearest-id.ts'
import { checkPrices } from './price-uses.ts'
import type { PriceLayer } from './prices.ts'
import { type FamilyFile, type FamilyModel, type OperatorModel, unitKeys, type WrittenPrices } from './schema.ts'

type Facts = Pick<FamilyModel, (typeof factKeys)[number]>

export type Alias = {
  readonly id: string
  readonly upstreamModel?: string
  readonly pinned?: { readonly dimensions: number }
  readonly sandboxOnly: boolean
}

/** A model as its family file and the operator together describe it, before limits and prices are worked out. */
export type Entry = {
  readonly id: string
  readonly vendor: string
  readonly capabilities: FamilyModel['capabilities']
  readonly offers: readonly Offer[]
  readonly facts: Facts
  readonly layers: readonly PriceLayer[]
  readonly date: string
  readonly source: string
  readonly confidence: Confidence
  readonly retired: boolean
  readonly end: FamilyModel['end']
  readonly hidden: boolean
  readonly pinned?: { readonly dimensions: number }
  readonly aliases: readonly Alias[]
  readonly path: Path
}

/** By id. Aliases stay inside their entry until models are built, so that a change to the model reaches them too. */
export type Entries = Map<string, Entry>

/** Reads the models as they are at a moment (Unix milliseconds), which decides their prices. */
export function readFamilies(families: readonly FamilyFile[], at: number): Entries {
  const entries: Entries = new Map()
  for (const family of families) {
    for (const [index, model] of family.models.entries()) {
      const path = [family.name, 'models', index]
      if (entries.has(model.id)) throw new CatalogueError([...path, 'id'], `${model.id} is already in the catalogue`)
      entries.set(model.id, familyEntry(family, model, path, at))
    }
  }
  return entries
}

function familyEntry(family: FamilyFile, model: FamilyModel, path: Path, at: number): Entry {
  const prices = pricesAt(model, at)
  return {
    id: model.id,
    vendor: family.vendor,
    capabilities: model.capabilities,
    offers: [{ vendor: family.vendor, upstreamModel: model.upstreamModel ?? model.id }],
    facts: factsOf(model),
    layers: prices === undefined ? [] : [{ written: prices.written, path: [...path, ...prices.path] }],
    date: model.created ?? family.date,
    source: prices?.source ?? model.source ?? family.source,
    confidence: model.confidence ?? family.confidence,
    retired: model.retired ?? false,
    end: model.end,
    hidden: false,
    aliases: [
      ...readAliases(model.aliases ?? []),
      ...(model.dated ?? []).map((id) => ({ id, upstreamModel: id, sandboxOnly: false })),
      ...(model.sandboxAliases ?? []).map((id) => ({ id, sandboxOnly: true })),
    ],
    path,
  }
}

type Draft = {
  readonly entries: Entries
  /**
   * By alias: the ids of entries that have it or had it. With thousands of models, looking through all takes seconds.
   */
  readonly owners: Map<string, Set<string>>
  /**
   * Those of the patterns so far. A pattern changes only models that exist by then, but its markup is meant for all it
   * matches: later ones have it too.
   */
  readonly markups: { readonly glob: string; readonly layer: PriceLayer }[]
}

/** Applies the operator's entries in order, so that a later one sees what an earlier one did. */
export function applyOverrides(entries: Entries, overrides: readonly OperatorModel[]): void {
  const draft: Draft = { entries, owners: new Map(), markups: [] }
  for (const entry of entries.values()) put(draft, entry)
  const seen = new Set<string>()
  for (const [index, override] of overrides.entries()) {
    const path = ['models', index]
    if (override.id.includes('*')) {
      applyToAll(draft, override, path)
      continue
    }
    if (seen.has(override.id)) throw new CatalogueError([...path, 'id'], `${override.id} has an entry above already`)
    seen.add(override.id)
    if (isCopy(override)) detachAlias(draft, override.id)
    else promoteAlias(draft, override.id)
    const entry = applyOne(draft, override, path)
    if (override.prices !== undefined) checkPrices(override.prices, [entry], [...path, 'prices'])
    put(draft, entry)
  }
}

function put({ entries, owners }: Draft, entry: Entry): void {
  entries.set(entry.id, entry)
  for (const { id } of entry.aliases) owners.set(id, (owners.get(id) ?? new Set()).add(entry.id))
}

function markupsFor(id: string, { markups }: Draft): PriceLayer[] {
  return markups.filter(({ glob }) => matchesGlob(glob, id)).map(({ layer }) => layer)
}

/** An entry that copies its own model changes it: as a copy, it would lose its dated ids and other aliases. */
function isCopy({ id, from }: OperatorModel): boolean {
  return from !== undefined && from !== id
}

function applyOne(draft: Draft, override: OperatorModel, path: Path): Entry {
  const { entries } = draft
  const present = isCopy(override) ? undefined : entries.get(override.id)
  if (present !== undefined) return lay(present, override, path)
  const markups = markupsFor(override.id, draft)
  if (override.from === undefined) return newEntry(draft, override, path, markups)
  const source = entries.get(override.from) ?? aliasEntry(draft, override.from)
  if (source === undefined) {
    const message = `there is no model ${override.from}${butThereIs(draft, override.from)}`
    throw new CatalogueError([...path, 'from'], message)
  }
  const laid = new Set(source.layers.map((layer) => layer.path.join()))
  const layers = [...source.layers, ...markups.filter((layer) => !laid.has(layer.path.join()))]
  // A copy is a model of its own: the aliases stay with the original, and hiding the original does not hide the copy.
  return lay({ ...source, id: override.id, layers, aliases: [], hidden: false, path }, override, path)
}

/** A pattern changes existing models; it cannot make or rename any. */
function applyToAll(draft: Draft, override: OperatorModel, path: Path): void {
  const { entries } = draft
  const { id: glob, hidden: _, prices, ...others } = override
  const [stray] = Object.keys(others)
  if (stray !== undefined) throw new CatalogueError([...path, stray], 'a pattern takes only prices and hidden')
  const found = [...entries.values()].filter((entry) => matchesGlob(glob, entry.id))
  const covered = new Set(found.flatMap((entry) => entry.aliases.map((alias) => alias.id)))
  const aliases = [...entries.values()].flatMap((entry) => entry.aliases.map((alias) => alias.id))
  const alone = aliases.filter((id) => matchesGlob(glob, id) && !covered.has(id))
  if (found.length + alone.length === 0) throw new CatalogueError([...path, 'id'], `no model matches ${glob}`)
  for (const id of alone) promoteAlias(draft, id)
  const changed = [...found.map((entry) => entry.id), ...alone].flatMap((id) => entries.get(id) ?? [])
  const laid = changed.map((entry) => lay(entry, override, path))
  for (const entry of laid) put(draft, entry)
  if (prices === undefined) return
  const { markup } = prices
  checkPrices(prices, laid, [...path, 'prices'])
  if (markup !== undefined) draft.markups.push({ glob, layer: { written: { markup }, path: [...path, 'prices'] } })
}

function butThereIs({ entries, owners }: Draft, id: string): string {
  const meant = nearestId([...entries.keys(), ...owners.keys()], id)
  return meant === undefined ? '' : `, but there is ${meant}`
}

function newEntry(draft: Draft, override: OperatorModel, path: Path, markups: readonly PriceLayer[]): Entry {
  const capabilities = capabilitiesOf(override)
  if (capabilities === undefined) {
    const advice = `${butThereIs(draft, override.id)}; a new one needs capability, and channels or vendor`
    throw new CatalogueError([...path, 'id'], `there is no model ${override.id} to change${advice}`)
  }
  if (override.channels === undefined && override.vendor === undefined) {
    throw new CatalogueError(path, 'a new model needs channels or vendor: where it can be had')
  }
  const bare: Entry = {
    id: override.id,
    vendor: 'custom',
    capabilities,
    offers: [],
    facts: {},
    layers: markups,
    // An operator's model without a date lists as if released with the built-in price lists.
    date: '2026-08-05',
    source: 'the operator',
    confidence: 'listed',
    retired: false,
    end: undefined,
    hidden: false,
    aliases: [],
    path,
  }
  return lay(bare, override, path)
}

/** An entry with the operator's values laid over it. */
function lay(entry: Entry, override: OperatorModel, path: Path): Entry {
  const { prices } = override
  if (prices !== undefined) checkTiers(entry.layers, prices, [...path, 'prices'])
  const amounts = prices !== undefined && Object.keys(prices).some((key) => key !== 'markup' && key !== 'currency')
  return {
    ...entry,
    capabilities: capabilitiesOf(override) ?? entry.capabilities,
    vendor: override.vendor ?? entry.vendor,
    offers: offersOf(entry, override),
    facts: mergedFacts(entry.facts, factsOf(override)),
    layers: prices === undefined ? entry.layers : [...entry.layers, { written: prices, path: [...path, 'prices'] }],
    date: override.created ?? entry.date,
    ...(amounts ? { source: 'the operator', confidence: 'listed' as const } : {}),
    // A model that is gone at its vendor, or will be, is not so on a channel that the operator names for it.
    retired: override.channels === undefined ? entry.retired : false,
    end: override.channels === undefined ? entry.end : undefined,
    hidden: override.hidden ?? entry.hidden,
    aliases: [...entry.aliases, ...readAliases(override.aliases ?? [])],
    path,
  }
}

const factGroups = ['images', 'embeddings', 'speech', 'video'] as const satisfies readonly (keyof Facts)[]

/** Groups are merged key by key: widening the resolutions must not lose the durations. */
function mergedFacts(known: Facts, given: Facts): Facts {
  const groups = factGroups.filter((group) => given[group] !== undefined)
  const merged = groups.map((group) => [group, { ...known[group], ...given[group] }])
  return { ...known, ...given, ...Object.fromEntries(merged) }
}

function capabilitiesOf({ capability, capabilities }: OperatorModel): Entry['capabilities'] | undefined {
  return capabilities ?? (capability === undefined ? undefined : [capability])
}

function offersOf(entry: Entry, override: OperatorModel): readonly Offer[] {
  const usual = override.upstreamModel ?? entry.offers[0]?.upstreamModel ?? entry.id
  if (override.channels !== undefined) {
    return override.channels.map(({ channel, upstreamModel }) => ({ channel, upstreamModel: upstreamModel ?? usual }))
  }
  if (override.vendor !== undefined) return [{ vendor: override.vendor, upstreamModel: usual }]
  if (override.upstreamModel === undefined) return entry.offers
  return entry.offers.map((offer) => ({ ...offer, upstreamModel: usual }))
}

/** An override of a price that has tiers must give the tiers too, or long inputs would silently keep the old price. */
function checkTiers(layers: readonly PriceLayer[], prices: WrittenPrices, path: Path): void {
  const tiers = layers.findLast((layer) => layer.written.tiers !== undefined)?.written.tiers ?? []
  if (prices.tiers !== undefined) return
  const shared = unitKeys.find((key) => prices[key] !== undefined && tiers.some((tier) => tier[key] !== undefined))
  if (shared === undefined) return
  const advice = 'write tiers too, or tiers: [] for one price at every length'
  throw new CatalogueError([...path, shared], `this model has other prices for long inputs; ${advice}`)
}

/** An alias whose id an entry takes stops being one. */
function detachAlias(draft: Draft, id: string): void {
  for (const entry of ownersOf(id, draft)) {
    put(draft, { ...entry, aliases: entry.aliases.filter((alias) => alias.id !== id) })
  }
}

/** An alias that is changed by itself becomes a copy of its model first. */
function promoteAlias(draft: Draft, id: string): void {
  const copy = aliasEntry(draft, id)
  if (copy === undefined) return
  detachAlias(draft, id)
  put(draft, copy)
}

function ownersOf(alias: string, { entries, owners }: Draft): Entry[] {
  const candidates = [...(owners.get(alias) ?? [])].flatMap((id) => entries.get(id) ?? [])
  return candidates.filter(({ aliases }) => aliases.some(({ id }) => id === alias))
}

function aliasEntry(draft: Draft, id: string): Entry | undefined {
  const [entry] = ownersOf(id, draft)
  const alias = entry?.aliases.find((candidate) => candidate.id === id)
  if (entry === undefined || alias === undefined) return undefined
  return {
    ...entry,
    id,
    aliases: [],
    offers: aliasOffers(entry.offers, alias),
    ...(alias.pinned === undefined ? {} : { pinned: alias.pinned }),
  }
}

export function aliasOffers(offers: readonly Offer[], { upstreamModel }: Alias): readonly Offer[] {
  return upstreamModel === undefined ? offers : offers.map((offer) => ({ ...offer, upstreamModel }))
}

function readAliases(written: NonNullable<FamilyModel['aliases']>): Alias[] {
  return written.map((alias) =>
    typeof alias === 'string' ? { id: alias, sandboxOnly: false } : { ...alias, sandboxOnly: false },
  )
}

const factKeys = [
  'contextTokens',
  'outputTokensMax',
  'choicesMax',
  'reasoning',
  'efforts',
  'rules',
  'images',
  'embeddings',
  'speech',
  'video',
] as const satisfies readonly (keyof FamilyModel)[]

function factsOf(model: Facts): Facts {
  return Object.fromEntries(factKeys.flatMap((key) => (model[key] === undefined ? [] : [[key, model[key]]])))
}
