import { z } from 'zod'
import { isGiven } from '../base/json.ts'
import { currencyPattern, parseDecimal } from '../base/money.ts'
import { capabilities } from '../capabilities/capability.ts'
import { videoForms } from '../capabilities/limits.ts'
import { modelRules } from '../capabilities/model-rules.ts'
import { plainWords } from '../config/plain-words.ts'
import { CatalogueError, type Path } from './error.ts'
import { confidences } from './model.ts'

// Every object is strict: a mistyped key is an error that names it, never a price or limit that is silently ignored.

/** Lower case, digits, dots and hyphens: the vendors' ids with `_ / :` as `-`. */
export const idPattern = /^[a-z0-9][a-z0-9.-]{0,127}$/
const globPattern = /^[a-z0-9.*-]{1,128}$/

const idRule = 'a model id is lower case letters, digits, dots and hyphens'
const modelId = z.string().regex(idPattern, idRule)
/** An id, or a pattern of ids in which `*` stands for any text. */
export const modelGlob = z.string().regex(globPattern, `${idRule}; * in it stands for any text`)
const vendorId = z.string().regex(/^[a-z0-9-]{1,32}$/, 'a vendor is written as in docs/vendors.md, in lower case')
const upstreamId = z.string().min(1).max(256)
const count = z.int().min(1).max(100_000_000)
const words = z.array(z.string().min(1).max(64)).max(200)
const day = z.iso.date('a date such as "2026-08-05"')
/** A day begins at midnight UTC. */
const moment = z.union([day, z.iso.datetime()])

/** The YAML parser turns a number into a float, which is not exact, so amounts are written as text. */
const amount = z
  .string({
    error: ({ input }) => (isGiven(input) ? 'an amount is a decimal in quotes, such as "0.15"' : undefined),
  })
  .refine((text) => !text.startsWith('-'), 'an amount is not negative')
  .refine((text) => parseDecimal(text) !== undefined, 'an amount is a decimal such as "0.15", without exponent or sign')

/** The prices of the units, by the key that an operator writes. `perMillion` is per million tokens or characters. */
const unitAmounts = z.strictObject({
  inputPerMillion: amount.exactOptional(),
  cachedInputPerMillion: amount.exactOptional(),
  cacheWritePerMillion: amount.exactOptional(),
  cacheWriteHourPerMillion: amount.exactOptional(),
  outputPerMillion: amount.exactOptional(),
  /** The price of all output of an answer with thinking; absent, thinking does not change the price. */
  thinkingOutputPerMillion: amount.exactOptional(),
  imageInputPerMillion: amount.exactOptional(),
  imageOutputPerMillion: amount.exactOptional(),
  audioInputPerMillion: amount.exactOptional(),
  audioOutputPerMillion: amount.exactOptional(),
  perMillionCharacters: amount.exactOptional(),
  perRequest: amount.exactOptional(),
  webSearchPerThousand: amount.exactOptional(),
})
const imageKey = z
  .string()
  .regex(/^(default|\d{2,5}x\d{2,5}(\/[a-z]{1,16})?)$/, 'a size such as 1024x1024, 1024x1024/high, or default')
const resolutionKey = z
  .string()
  .regex(/^(default|\d{3,4}p|\d{1,2}k|\d{2,5}x\d{2,5})$/, 'a resolution such as 720p, 4k, or default')

const wholeVideoKey = z
  .string()
  .regex(/^(\d{3,4}p|\d{1,2}k|\d{2,5}x\d{2,5})\/\d{1,3}s$/, 'a resolution and a length such as 768p/6s')

const heard = z.strictObject({ sound: amount, silent: amount })
const bySize = z.union([amount, z.record(resolutionKey, z.union([amount, heard]))])

const pricesSchema = z.strictObject({
  ...unitAmounts.shape,
  perImage: z.union([amount, z.record(imageKey, amount)]).exactOptional(),
  perSecond: bySize.exactOptional(),
  /** Prices of whole videos, where no price per second gives the vendor's; used instead of `perSecond`. */
  perVideo: z.record(wholeVideoKey, amount).exactOptional(),
  perMillionVideoTokens: z.union([bySize, heard]).exactOptional(),
  /** The price if the client's request has input videos; absent, they do not change the price. */
  perMillionVideoTokensWithInput: z.union([bySize, heard]).exactOptional(),
  tiers: z
    .array(z.strictObject({ aboveInputTokens: count, ...unitAmounts.shape }))
    .max(16)
    .exactOptional(),
  currency: z.string().regex(currencyPattern, 'a currency is three capital letters').exactOptional(),
  markup: amount
    .refine(
      (text) => !/^[0.]*$/.test(text),
      'a markup is above 0: "1" sells at the vendor\'s price; what is free has prices of "0"',
    )
    .exactOptional(),
})

// A span that ends before it begins would leave a model on sale that refuses every request.
const span = z
  .strictObject({ min: z.int().min(0), max: z.int().min(0) })
  .refine(({ min, max }) => min <= max, 'min is more than max')
/** Seconds: a span such as `2..15`, or a list. */
const durations = z.union([
  z
    .string()
    .regex(/^\d{1,3}\.\.\d{1,3}$/, 'seconds as a list, or from..to')
    .refine((text) => {
      const [from = 0, to = 0] = text.split('..').map(Number)
      return from <= to
    }, 'from is more than to'),
  z.array(z.int().min(1).max(600)).min(1).max(600),
])

const facts = {
  created: day.exactOptional(),
  contextTokens: count.exactOptional(),
  outputTokensMax: count.exactOptional(),
  choicesMax: z.int().min(1).max(128).exactOptional(),
  reasoning: z.boolean().exactOptional(),
  efforts: words.exactOptional(),
  rules: z.array(z.enum(modelRules)).max(modelRules.length).exactOptional(),
  images: z
    .strictObject({
      sizes: words.exactOptional(),
      sizeDefault: z.string().exactOptional(),
      free: z
        .strictObject({
          step: count,
          sideMin: count.exactOptional(),
          sideMax: count.exactOptional(),
          ratioMax: count.exactOptional(),
          pixelsMin: count.exactOptional(),
          pixelsMax: count.exactOptional(),
        })
        .exactOptional(),
      qualities: words.exactOptional(),
      countMax: count.exactOptional(),
      alwaysBytes: z.boolean().exactOptional(),
      formats: words.exactOptional(),
      references: span.exactOptional(),
      edits: z.strictObject({ sizes: words, references: span, mask: z.boolean() }).exactOptional(),
    })
    .exactOptional(),
  embeddings: z
    .strictObject({
      dimensions: z.array(count).max(64).exactOptional(),
      dimensionsSpan: span.exactOptional(),
      dimensionsDefault: count.exactOptional(),
      inputTokensMax: count.exactOptional(),
      batchMax: count.exactOptional(),
      batchTokensMax: count.exactOptional(),
    })
    .exactOptional(),
  speech: z
    .strictObject({
      voices: words.exactOptional(),
      voiceDefault: z.string().exactOptional(),
      formats: words.exactOptional(),
      onlyFormat: z.string().exactOptional(),
      instructions: z.boolean().exactOptional(),
      charactersMax: count.exactOptional(),
    })
    .exactOptional(),
  video: z
    .strictObject({
      form: z.enum(videoForms).exactOptional(),
      kinds: z
        .array(z.enum(['t2v', 'i2v', 'r2v']))
        .min(1)
        .exactOptional(),
      resolutions: z.array(resolutionKey).min(1).max(16).exactOptional(),
      resolutionDefault: resolutionKey.exactOptional(),
      durations: durations.exactOptional(),
      durationDefault: count.exactOptional(),
      durationFree: z.boolean().exactOptional(),
      ratios: words.exactOptional(),
      referencesMax: z.int().min(0).exactOptional(),
      referenceVideosMax: z.int().min(0).exactOptional(),
      referenceAudiosMax: z.int().min(0).exactOptional(),
      inputSecondsBilled: z.boolean().exactOptional(),
      inputSecondsMax: count.exactOptional(),
      creditsPerSecond: z.record(resolutionKey, count).exactOptional(),
      drafts: z.boolean().exactOptional(),
      sound: z.enum(['always', 'never', 'optional']).exactOptional(),
      deadlineSeconds: count.exactOptional(),
    })
    .exactOptional(),
}

const capability = z.enum(capabilities)
const pinned = z.strictObject({ dimensions: count })
const alias = z.union([
  modelId,
  z.strictObject({ id: modelId, upstreamModel: upstreamId.exactOptional(), pinned: pinned.exactOptional() }),
])

/**
 * What a vendor has announced: each takes the place of the prices before it, as a whole, once its moment has come. They
 * have the same keys, so that what an operator lays over one of them fits the next.
 */
const laterPrices = z
  .array(z.strictObject({ from: moment, source: z.string().min(1), prices: pricesSchema }))
  .min(1)
  .refine(
    (all) => all.every(({ from }, i) => i === 0 || Date.parse(all[i - 1]?.from ?? '') < Date.parse(from)),
    'later prices are in the order of their moments',
  )

const familyModelSchema = z.strictObject({
  id: modelId,
  upstreamModel: upstreamId.exactOptional(),
  capabilities: z.array(capability).min(1),
  ...facts,
  prices: pricesSchema.exactOptional(),
  laterPrices: laterPrices.exactOptional(),
  source: z.string().min(1).exactOptional(),
  confidence: z.enum(confidences).exactOptional(),
  retired: z.boolean().exactOptional(),
  /** What its vendor has announced. The model stays on sale: such dates move, and relays may go on selling it. */
  end: z.strictObject({ date: day, source: z.string().min(1) }).exactOptional(),
  aliases: z.array(alias).exactOptional(),
  /** The vendor's dated ids of this model: they have its price and are sent upstream as they are. */
  dated: z.array(modelId).exactOptional(),
  /** Ids that exist in sandbox mode only, such as the specification's placeholders. */
  sandboxAliases: z.array(modelId).exactOptional(),
})

/**
 * One family: `source` and `confidence` hold for every model that does not have its own. A test checks the built-in
 * files against this schema, so that a start need not.
 */
export const familySchema = z.strictObject({
  vendor: vendorId,
  date: day,
  source: z.string().min(1),
  confidence: z.enum(confidences),
  models: z.array(familyModelSchema).min(1),
})

/** An entry of the operator's `models:`: a change to a model, a copy of one (`from`), or a new one. */
const operatorModelSchema = z
  .strictObject({
    id: modelGlob,
    from: modelId.exactOptional(),
    capability: capability.exactOptional(),
    capabilities: z.array(capability).min(1).exactOptional(),
    vendor: vendorId.exactOptional(),
    upstreamModel: upstreamId.exactOptional(),
    channels: z
      .array(z.strictObject({ channel: z.string().min(1).max(128), upstreamModel: upstreamId.exactOptional() }))
      .min(1)
      .exactOptional(),
    ...facts,
    prices: pricesSchema.exactOptional(),
    hidden: z.boolean().exactOptional(),
    aliases: z.array(alias).exactOptional(),
  })
  .refine((entry) => entry.capability === undefined || entry.capabilities === undefined, {
    path: ['capability'],
    error: 'either capability or capabilities, not both',
  })

export type WrittenPrices = z.infer<typeof pricesSchema>
export type UnitKey = keyof z.infer<typeof unitAmounts>
export const unitKeys: readonly UnitKey[] = unitAmounts.keyof().options
export type FamilyModel = z.infer<typeof familyModelSchema>
/** `name` is the name of the file, for messages. */
export type FamilyFile = z.infer<typeof familySchema> & { readonly name: string }
export type OperatorModel = z.infer<typeof operatorModelSchema>

/** Reads the operator's `models:` of the configuration file, which may be absent. */
export function readOverrides(content: unknown): OperatorModel[] {
  return content === undefined || content === null ? [] : read(z.array(operatorModelSchema), content, ['models'])
}

function read<T>(schema: z.ZodType<T>, content: unknown, at: Path): T {
  const result = schema.safeParse(content, plainWords)
  if (result.success) return result.data
  const [path, reason] = deepest(result.error.issues, [])
  throw new CatalogueError([...at, ...path], reason)
}

type Found = readonly [path: Path, reason: string]

/** The first fault. In a union it is the fault of the alternative that matched deepest, as the one that was meant. */
function deepest(issues: readonly z.core.$ZodIssue[], at: Path): Found {
  const issue = issues[0]
  if (issue === undefined) return [at, 'not valid']
  const path = [...at, ...issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step))]
  if (issue.code === 'unrecognized_keys') return [[...path, issue.keys[0] ?? ''], issue.message]
  if (issue.code === 'invalid_key') return [path, issue.issues[0]?.message ?? issue.message]
  if (issue.code !== 'invalid_union') return [path, issue.message]
  const found = issue.errors.map((alternative) => deepest(alternative, path))
  return found.reduce(
    (best, next) => (next[0].length > best[0].length ? next : best),
    found[0] ?? [path, issue.message],
  )
}
