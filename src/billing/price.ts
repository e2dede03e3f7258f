import { nano, pico, toNano, type Nano, type Pico } from '../base/money.ts'
import type { Bound } from '../capabilities/ask.ts'
import {
  units,
  type Counts,
  type PriceList,
  type Rated,
  type Rates,
  type Unit,
  type Usage,
  type VideoUsed,
} from '../capabilities/usage.ts'

/** The unit as which vendors charge a unit that has no rate of its own. */
const chargedAs: { readonly [R in Rated]?: Unit } = {
  cachedInput: 'input',
  cacheWrite: 'input',
  cacheWriteHour: 'cacheWrite',
  imageInput: 'input',
  audioInput: 'input',
  imageOutput: 'output',
  audioOutput: 'output',
  thinkingOutput: 'output',
}

const inputUnits = ['input', 'cachedInput', 'cacheWrite', 'cacheWriteHour', 'imageInput', 'audioInput'] as const
const outputUnits = ['output', 'thinkingOutput', 'imageOutput', 'audioOutput'] as const

/**
 * A million dollars: no answer costs more, and the sum of thousands of these still fits a ledger column. Vendors have
 * reported absurd counts, and a posting that the ledger cannot hold stops the node, and stops it again at every start.
 */
const answerMax = nano(1_000_000_000_000_000n)

/** The price of everything used, each unit at its rate, summed in pico-dollars and rounded once. */
export function priceOf(usage: Usage, prices: PriceList): Nano {
  return rounded(picoOf(usage, prices))
}

/**
 * The price of all calls made for one request: each counts as one `request` and reaches its own tier, and the sum is
 * rounded once. Marks, settlements and reconciling all use this function, so that they agree.
 */
export function priceOfParts(parts: readonly Usage[], prices: PriceList): Nano {
  let sum = 0n
  for (const usage of parts) sum += picoOf(usage, prices, 1)
  return rounded(sum)
}

function rounded(sum: bigint): Nano {
  const price = toNano(pico(sum))
  return price > answerMax ? answerMax : price
}

function picoOf(usage: Usage, prices: PriceList, requests = usage.request): bigint {
  const rates = ratesFor(usage, prices)
  let sum = 0n
  for (const unit of units) {
    const quantity = unit === 'request' ? requests : usage[unit]
    if (quantity !== undefined && quantity > 0) sum += times(quantity, rateOf(unit, rates))
  }
  if (usage.images !== undefined) sum += BigInt(usage.images.count) * imageRate(usage.images, prices)
  const { video, videoToken } = usage
  if (video !== undefined || videoToken !== undefined) sum += videoPico(video ?? unseen, videoToken, prices)
  return sum
}

/** By its tokens where the list has a token price, else as a whole where it has prices for videos, else by seconds. */
function videoPico(video: VideoUsed, tokens: number | undefined, prices: PriceList): bigint {
  if (tokens !== undefined && isByToken(prices)) return BigInt(Math.max(0, tokens)) * videoTokenRate(video, prices)
  if (isByVideo(prices)) return wholeVideoPrice(video, prices)
  // Cutting off less than a pico-dollar does not change how the whole is rounded.
  return (millisecondsOf(video) * secondRate(video, prices)) / 1_000n
}

/** A vendor may count parts of a second. */
function millisecondsOf({ seconds }: VideoUsed): bigint {
  return BigInt(Math.round(seconds * 1_000))
}

/** For video tokens without any other fact about the video: they are charged at the default rate. */
const unseen: VideoUsed = { seconds: 0, resolution: 'default' }

function isByToken({ perVideoToken }: PriceList): boolean {
  return Object.keys(perVideoToken).length > 0
}

function isByVideo({ perVideo }: PriceList): boolean {
  return Object.keys(perVideo).length > 0
}

type VideoSpec = Pick<VideoUsed, 'resolution' | 'seconds'>

/** A length that has no price is a mistake: its price is never worked out from that of another length. */
function wholeVideoPrice(video: VideoSpec, prices: PriceList): bigint {
  const price = prices.perVideo[videoPriceKey(video)]
  if (price === undefined) throw new Error(`${video.seconds} seconds of ${video.resolution} have no price`)
  return price
}

/** Whether a list has a price for a video of this length. Prices per second and per token cover every length. */
export function sellsVideo(video: VideoSpec, prices: PriceList): boolean {
  return !isByVideo(prices) || prices.perVideo[videoPriceKey(video)] !== undefined
}

function videoPriceKey({ resolution, seconds }: VideoSpec): string {
  return `${resolution}/${seconds}s`
}

type ImageSpec = { readonly size?: string | undefined; readonly quality?: string | undefined }

/** Throws for an image without a price: it is not for sale, and should have been refused before. */
function imageRate(image: ImageSpec, prices: PriceList): bigint {
  const rate = imageRateIn(prices, image)
  if (rate === undefined) throw new Error(`an image of ${image.size} in ${image.quality} has no price`)
  return rate
}

/** Whether a list has a price for an image of this size and quality. */
export function sellsImage(image: ImageSpec, prices: PriceList): boolean {
  return imageRateIn(prices, image) !== undefined
}

/** The price by size and quality, else by size, else the one price for all. */
function imageRateIn({ perImage }: PriceList, { size = '', quality = '' }: ImageSpec): Pico | undefined {
  return perImage[`${size}/${quality}`] ?? perImage[size] ?? perImage['default']
}

function secondRate(video: VideoUsed, { perSecond }: PriceList): bigint {
  const rate = videoRate(perSecond, video, '')
  if (rate === undefined) throw new Error(`a second of ${video.resolution} has no price`)
  return rate
}

/** With input videos from the client a token may have a price of its own; otherwise the usual one applies. */
function videoTokenRate(video: VideoUsed, { perVideoToken }: PriceList): bigint {
  const special = video.hasInputVideo === true ? videoRate(perVideoToken, video, '/input') : undefined
  const rate = special ?? videoRate(perVideoToken, video, '')
  if (rate === undefined) throw new Error(`a token of ${video.resolution} has no price`)
  return rate
}

/** The rate by resolution and audio, else by resolution, else by audio, else the one for all. */
function videoRate(table: Readonly<Record<string, Pico>>, { resolution, sound = false }: VideoUsed, end: string) {
  const heard = sound ? 'sound' : 'silent'
  const keys = [`${resolution}/${heard}`, resolution, `default/${heard}`, 'default']
  return keys.map((key) => table[key + end]).find((rate) => rate !== undefined)
}

/** The most that a request within these bounds can cost: its tokens at the dearest rate they might turn out to have. */
export function holdFor(bound: Bound, prices: PriceList): Nano {
  const { input = 0, images, video, videoToken } = bound
  let most = 0n
  for (const step of stepsOf(prices)) {
    if (input <= step.aboveInputTokens) continue
    const cost = mostAt(step, bound)
    if (cost > most) most = cost
  }
  if (images !== undefined) most += BigInt(images.count) * imageRate(images, prices)
  if (video !== undefined) most += videoPico(video, videoToken, prices)
  return toNano(pico(most))
}

function mostAt({ rates, dearestInput, dearestOutput }: Step, bound: Bound): bigint {
  const { input = 0, output = 0, request = 1, webSearch = 0, character = 0 } = bound
  return (
    times(input, dearestInput) +
    times(output, dearestOutput) +
    times(request, rates.request) +
    times(webSearch, rates.webSearch) +
    times(character, rates.character)
  )
}

/**
 * How many output tokens an amount pays for after the rest of the hold, at the worst rates that the input may reach. A
 * 402 shows the number, so that the client can lower its output limit.
 */
export function affordableOutput(available: Nano, bound: Bound, prices: PriceList): number {
  const { input = 0 } = bound
  let least: bigint | undefined
  for (const step of stepsOf(prices)) {
    if (input <= step.aboveInputTokens) continue
    const left = available * 1000n - mostAt(step, { ...bound, output: 0 })
    if (left <= 0n || step.dearestOutput === 0n) return 0
    const tokens = left / step.dearestOutput
    if (least === undefined || tokens < least) least = tokens
  }
  return Number(least ?? 0n)
}

/** Spares the conversion to BigInt for zeros, since most quantities are absent or free. */
function times(quantity: number, rate = 0n): bigint {
  return quantity === 0 || rate === 0n ? 0n : BigInt(quantity) * rate
}

/** The rates that apply from one input length on, and the dearest of them. */
type Step = {
  readonly aboveInputTokens: number
  readonly rates: Rates
  readonly dearestInput: bigint
  readonly dearestOutput: bigint
}

/** A price list never changes, so its steps are worked out once. */
const stepsOfLists = new WeakMap<PriceList, readonly Step[]>()

/** Ascending by input length, each step with its complete rates. */
function stepsOf(prices: PriceList): readonly Step[] {
  const known = stepsOfLists.get(prices)
  if (known !== undefined) return known
  const tiers = [{ aboveInputTokens: -1, rates: {} }, ...prices.tiers]
  const steps = tiers.map(({ aboveInputTokens, rates: own }) => {
    const rates = { ...prices.rates, ...own }
    return {
      aboveInputTokens,
      rates,
      dearestInput: dearest(inputUnits, rates),
      dearestOutput: dearest(outputUnits, rates),
    }
  })
  stepsOfLists.set(prices, steps)
  return steps
}

function ratesFor(usage: Usage, prices: PriceList): Rates {
  const rates = tierFor(usage, prices)
  const { thinkingOutput: output } = rates
  return output === undefined || (usage.reasoning ?? 0) === 0 ? rates : { ...rates, output }
}

function tierFor(counts: Counts, prices: PriceList): Rates {
  if (prices.tiers.length === 0) return prices.rates
  const input = inputUnits.reduce((sum, unit) => sum + (counts[unit] ?? 0), 0)
  return stepsOf(prices).findLast((step) => input > step.aboveInputTokens)?.rates ?? prices.rates
}

function rateOf(unit: Rated, rates: Rates): bigint {
  const rate = rates[unit]
  if (rate !== undefined) return rate
  const substitute = chargedAs[unit]
  return substitute === undefined ? 0n : rateOf(substitute, rates)
}

function dearest(among: readonly Rated[], rates: Rates): bigint {
  return among.reduce<bigint>((most, unit) => (rateOf(unit, rates) > most ? rateOf(unit, rates) : most), 0n)
}
